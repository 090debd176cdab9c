#include "world/rank_run.hpp"

#include "simulated/host_trap.hpp"
#include "world/endpoint.hpp"

#include "swaplab/sim/assert.hpp"
#include "swaplab/sim/mutant.hpp"

#include <fmt/format.h>

#include <poll.h>
#include <utility>

namespace swaplab::sim {
namespace {

thread_local RankRun::Wish wished = RankRun::Wish::none;
thread_local std::chrono::milliseconds wished_delay{0};

Fiber& wish(RankRun::Wish what) {
    SWAPLAB_ASSERT(Fiber::current() != nullptr, "only a rank can be killed, stopped or delayed");
    wished = what;
    return *Fiber::current();
}

}  // namespace

void kill_rank() {
    wish(RankRun::Wish::kill).leave_for_good();
}

void stop_rank() {
    wish(RankRun::Wish::stop).leave_for_good();
}

void delay_rank(std::chrono::milliseconds time) {
    if (!SWAPLAB_MUTANT("world.delay_ignored")) {
        wished_delay = time;
        wish(RankRun::Wish::delay).suspend();
    }
}

RankRun::RankRun(WorldState& world, int rank, const RankFunction& program)
    : world_(world), rank_(rank), fiber_([this, &program] { run(program); }) {}

void RankRun::run(const RankFunction& program) {
    try {
        world_.at(rank_, RankPhase::started);
        world_.board().seat(rank_).present.store(true);
        Endpoint endpoint(world_, rank_);
        result_.value = program(endpoint);
        const std::uint64_t limit = world_.options().value_bytes;
        if (result_.value.size() > limit) {
            throw ArgumentError(
                fmt::format("rank {} gives back {} bytes; WorldOptions::value_bytes is {}", rank_,
                            result_.value.size(), limit),
                {{"parameter", "value_bytes"},
                 {"rank", fmt::format("rank {}", rank_)},
                 {"expected", fmt::format("at most {}", limit)},
                 {"found", std::to_string(result_.value.size())}});
        }
        world_.at(rank_, RankPhase::returned);
    } catch (...) {
        result_ = {RankResult::End::threw, std::current_exception(), ""};
    }
}

bool RankRun::resume() {
    fiber_.resume();
    wish_ = std::exchange(wished, Wish::none);
    delay_ = wished_delay;
    if (fiber_.abandoned() && wish_ != Wish::none) {
        result_.end = RankResult::End::killed;
    } else if (fiber_.abandoned()) {
        result_ = {RankResult::End::trapped, report_touch(), ""};
    }
    return fiber_.finished() || fiber_.abandoned();
}

void RankRun::resume_to_end() {
    while (!resume()) {
        SWAPLAB_ASSERT(wish_ == Wish::delay, "a rank with a thread of its own gave it up");
        ::poll(nullptr, 0, static_cast<int>(delay_.count()));
    }
}

void RankRun::show_end(std::string_view reason) {
    constexpr End ends[] = {End::returned, End::threw, End::trapped, End::killed};
    const bool killed = result_.end == RankResult::End::killed;
    if (wish_ == Wish::stop) {
        world_.end(rank_, End::stopped, reason);
    } else {
        world_.end(rank_, ends[static_cast<std::size_t>(result_.end)],
                   killed          ? "by its program"
                   : result_.error ? text_of(result_.error)
                                   : "");
    }
    if (killed) {
        result_.error = std::make_exception_ptr(world_.lost(rank_, "", {}));
    }
}

}  // namespace swaplab::sim
