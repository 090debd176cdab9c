#include "simulated/scheduler.hpp"

#include "swaplab/sim/assert.hpp"
#include "swaplab/sim/mutant.hpp"

#include <algorithm>
#include <utility>
#include <variant>

namespace swaplab::sim {

Scheduler::Scheduler(const SimulatedDeviceOptions& options, const OperationLog& log,
                     Execute execute)
    : schedule_(options.schedule),
      log_(log),
      rng_(hash_mix(options.seed, static_cast<std::uint64_t>(options.rank))),
      luck_seed_(hash_mix(options.seed, static_cast<std::uint64_t>(options.rank))),
      record_(options.record),
      recorded_chances_(options.chances),
      choose_(options.choose),
      execute_(std::move(execute)) {
    if (schedule_ == Schedule::chosen && !choose_) {
        throw ArgumentError("a device of schedule \"chosen\" needs options.choose");
    }
    if (schedule_ == Schedule::pct) {
        for (std::uint64_t change = 1; change < options.pct_depth; ++change) {
            change_points_.push_back(
                rng_.below(std::max<std::uint64_t>(options.pct_operations, 1)));
        }
        std::sort(change_points_.rbegin(), change_points_.rend());
    }
}

LaneId Scheduler::open(NameId name, const VectorClock& host) {
    for (LaneId id = 0; id < lanes_.size(); ++id) {
        Lane& lane = lanes_[id];
        if (!lane.open && lane.pending.empty() && host.covers({id, lane.issued})) {
            lane.open = true;
            lane.name = name;
            return id;
        }
    }
    Lane& lane = lanes_.emplace_back();
    lane.name = name;
    if (schedule_ == Schedule::pct) {
        lane.priority = rng_.next() | std::uint64_t{1} << 63U;  // above all changed ones
    }
    return static_cast<LaneId>(lanes_.size() - 1);
}

void Scheduler::issue(LaneId lane, const Operation& operation) {
    SWAPLAB_ASSERT(!running_, "an operation issued another one");
    ++lanes_[lane].issued;
    ++pending_;
    lanes_[lane].pending.push(operation);
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
        case Schedule::pct:
            return run_front(highest_priority());
        case Schedule::replay:
            return run_front(recorded());
        case Schedule::chosen:
            return run_front(chosen());
    }
}

void Scheduler::run_all() {
    while (!idle()) {
        const bool replays = schedule_ == Schedule::replay && order_.size() < record_.size();
        run_front(replays ? recorded() : schedule_ == Schedule::chosen ? chosen() : oldest());
    }
}

bool Scheduler::chosen_chance() {
    switch (schedule_) {
        case Schedule::random:
        case Schedule::pct:
            return rng_.below(2) == 1;
        case Schedule::chosen:
            return choose_(2) == 1;
        case Schedule::fifo:
        case Schedule::latest:
        case Schedule::replay:
            return false;
    }
    return false;
}

bool Scheduler::luck() {
    ++lucks_;
    const std::optional<bool> recorded = recorded_chance();
    return remember(recorded                        ? *recorded
                    : schedule_ == Schedule::chosen ? choose_(2) == 1
                                                    : hash_mix(luck_seed_, lucks_) % 2 == 1);
}

std::optional<bool> Scheduler::recorded_chance() const {
    const bool known = schedule_ == Schedule::replay && chances_.size() < recorded_chances_.size();
    return known && !SWAPLAB_MUTANT("sim.chances_unreplayed")
               ? std::optional<bool>(recorded_chances_[chances_.size()])
               : std::nullopt;
}

bool Scheduler::remember(bool chance) {
    chances_.push_back(chance);
    return chance;
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

void Scheduler::find_choices() {
    choices_.clear();
    for (Lane& lane : lanes_) {
        if (ready(lane)) {
            choices_.push_back(&lane);
        }
    }
    SWAPLAB_ASSERT(!choices_.empty(), "nothing is ready");
}

Scheduler::Lane& Scheduler::any_ready() noexcept {
    find_choices();
    return *choices_[rng_.below(choices_.size())];
}

Scheduler::Lane& Scheduler::highest_priority() noexcept {
    find_choices();
    while (true) {
        Lane& lane = **std::max_element(
            choices_.begin(), choices_.end(),
            [](const Lane* a, const Lane* b) { return a->priority < b->priority; });
        if (change_points_.empty() || change_points_.back() > order_.size()) {
            return lane;
        }
        change_points_.pop_back();
        lane.priority = ++changes_;
    }
}

Scheduler::Lane& Scheduler::chosen() {
    find_choices();
    for (Lane* lane : choices_) {
        if (std::holds_alternative<Marker>(lane->pending.front().work)) {
            return *lane;
        }
    }
    if (choices_.size() == 1) {
        return *choices_.front();
    }
    const std::size_t choice = choose_(choices_.size());
    SWAPLAB_ASSERT(choice < choices_.size(), "a choice that is not there");
    return *choices_[choice];
}

Scheduler::Lane& Scheduler::recorded() {
    if (order_.size() == record_.size()) {
        diverge("the end of the record", "a wait for more");
    }
    const ExecutedOperation& next = record_[order_.size()];
    const auto lane = std::find_if(lanes_.begin(), lanes_.end(), [&](const Lane& each) {
        return ready(each) && each.pending.front().id == next.operation;
    });
    const std::string expected = "operation " + std::to_string(next.operation);
    if (lane == lanes_.end()) {
        diverge(expected, "it was not issued, or may not run yet");
    }
    if (log_.digest(next.operation) != next.digest) {
        diverge(expected + " as recorded", log_.describe(next.operation));
    }
    return *lane;
}

void Scheduler::check_replayed() const {
    if (schedule_ == Schedule::replay && order_.size() < record_.size()) {
        diverge("operation " + std::to_string(record_[order_.size()].operation),
                "the end of the program");
    }
}

void Scheduler::diverge(const std::string& expected, const std::string& found) const {
    const std::string step = std::to_string(order_.size());
    throw ReplayDiverged("the program is not the recorded one: step " + step + ", expected " +
                             expected + ", found " + found + "; record it again",
                         {{"step", step}, {"expected", expected}, {"found", found}});
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
    return found != nullptr ? *found : oldest();  // a free may follow an allocation of a race
}

void Scheduler::run_front(Lane& lane) {
    struct Popped {  // also when the operation fails
        Lane& lane;
        bool& running;
        ~Popped() {
            lane.pending.pop();
            running = false;
        }
    };
    const Operation operation = lane.pending.front();
    ++lane.executed;
    --pending_;
    digest_.add(operation.id);
    order_.push_back(operation.id);
    running_ = true;
    const Popped popped{lane, running_};
    execute_(operation);
}

}  // namespace swaplab::sim
