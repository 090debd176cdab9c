#include "simulated/scheduler.hpp"

#include "swaplab/sim/assert.hpp"

#include <utility>

namespace swaplab::sim {

Scheduler::Scheduler(Schedule schedule, std::uint64_t seed, Execute execute)
    : schedule_(schedule), rng_(seed), execute_(std::move(execute)) {}

LaneId Scheduler::open(std::string_view name, const VectorClock& host) {
    for (LaneId id = 0; id < lanes_.size(); ++id) {
        Lane& lane = lanes_[id];
        if (!lane.open && lane.pending.empty() && host.covers({id, lane.issued})) {
            lane.open = true;
            lane.name = name;
            return id;
        }
    }
    lanes_.emplace_back().name = name;
    return static_cast<LaneId>(lanes_.size() - 1);
}

void Scheduler::issue(LaneId lane, Operation operation) {
    ++lanes_[lane].issued;
    ++pending_;
    lanes_[lane].pending.push_back(std::move(operation));
}

void Scheduler::run_until(Epoch target, const VectorClock& needed) {
    while (!has_run(target)) {
        run_towards(needed);
    }
}

void Scheduler::run_towards(const VectorClock& needed) {
    switch (schedule_) {
        case Schedule::fifo:
            return run_front(oldest());
        case Schedule::random:
            return run_front(any_ready());
        case Schedule::latest:
            return run_front(youngest_needed(needed));
    }
}

void Scheduler::run_all() {
    while (!idle()) {
        run_front(oldest());
    }
}

bool Scheduler::ready(const Lane& lane) const noexcept {
    return !lane.pending.empty() && has_run(lane.pending.front().after);
}

Scheduler::Lane& Scheduler::oldest() noexcept {
    Lane* found = nullptr;
    for (Lane& lane : lanes_) {
        if (!lane.pending.empty() &&
            (found == nullptr || lane.pending.front().id < found->pending.front().id)) {
            found = &lane;
        }
    }
    SWAPLAB_ASSERT(found != nullptr, "nothing is pending");
    return *found;
}

Scheduler::Lane& Scheduler::any_ready() noexcept {
    std::vector<Lane*> choices;
    for (Lane& lane : lanes_) {
        if (ready(lane)) {
            choices.push_back(&lane);
        }
    }
    SWAPLAB_ASSERT(!choices.empty(), "nothing is ready");
    return *choices[rng_.below(choices.size())];
}

Scheduler::Lane& Scheduler::youngest_needed(const VectorClock& needed) noexcept {
    Lane* found = nullptr;
    for (LaneId id = 0; id < lanes_.size(); ++id) {
        Lane& lane = lanes_[id];
        if (lane.executed < needed.at(id) && ready(lane) &&
            (found == nullptr || lane.pending.front().id > found->pending.front().id)) {
            found = &lane;
        }
    }
    SWAPLAB_ASSERT(found != nullptr, "nothing that is needed is ready");
    return *found;
}

void Scheduler::run_front(Lane& lane) {
    const Operation operation = std::move(lane.pending.front());
    lane.pending.pop_front();
    ++lane.executed;
    --pending_;
    digest_.add(operation.id);
    execute_(operation.work);
}

}  // namespace swaplab::sim
