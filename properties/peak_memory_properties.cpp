/// Peak bound: construction and load do not raise device memory by a byte, a step raises it by its
/// slots and gives them back.

#include "property.hpp"
#include "training.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace swaplab::properties {
namespace {

/// The device slots of one rank's optimizer.
struct Ring {
    std::int64_t slots = 0;
    std::uint64_t slot_bytes = 0;

    [[nodiscard]] std::uint64_t bytes() const {
        return static_cast<std::uint64_t>(slots) * slot_bytes;
    }
};

/// The ring of the step that `figures` measured; `kept` is what the step before left.
Ring ring_of(const Story& story, const StepFigures& figures, const Ring& kept) {
    const BucketFigures buckets =
        bucket_figures(story, figures.restarted, figures.rank, figures.step, figures.groups);
    const auto needed = std::min<std::int64_t>(story.slots, buckets.touched);
    const bool reused = kept.slot_bytes == buckets.slot_bytes;
    return {reused ? std::max(kept.slots, needed) : needed, buckets.slot_bytes};
}

void check_loads(const Outcome& outcome) {
    for (const LoadFigures& figures : outcome.loads) {
        const std::string who = fmt::format("rank {}", figures.rank);
        PROP_TRUE(figures.construction_rise == 0,
                  fmt::format("{}: construction raises device memory by {} B", who,
                              figures.construction_rise));
        PROP_TRUE(figures.load_kept == 0,
                  fmt::format("{}: load keeps {} B of device memory", who, figures.load_kept));
        PROP_TRUE(figures.load_rise == 0,
                  fmt::format("{}: load raises device memory by {} B", who, figures.load_rise));
        PROP_TRUE(figures.worst_peak == figures.worst_before,
                  fmt::format("{}: under some schedule the load raises device memory from {} to {} "
                              "B",
                              who, figures.worst_before, figures.worst_peak));
        PROP_TRUE(figures.load_pinned_kept == 0, fmt::format("{}: load keeps {} B of pinned memory",
                                                             who, figures.load_pinned_kept));
    }
}

void check_step(const StepFigures& figures, std::uint64_t rise, std::int64_t kept) {
    const std::string who = fmt::format("rank {}, step {}", figures.rank, figures.step);
    PROP_TRUE(
        figures.rise == rise,
        fmt::format("{}: step raises device memory by {} B, expected {}", who, figures.rise, rise));
    PROP_TRUE(figures.kept == kept, fmt::format("{}: step keeps {} B of device memory, expected {}",
                                                who, figures.kept, kept));
}

/// Of each run and rank the largest bound of a step so far, which no schedule may exceed.
class WorstBounds {
  public:
    /// `bytes`: what the step may hold. What the step before freed may still be there, but nothing
    /// is allocated beside it.
    void check(const StepFigures& figures, std::uint64_t bytes) {
        std::uint64_t& bound = bounds_[{figures.restarted, figures.rank}];
        bound = std::max(bound, bytes);
        PROP_TRUE(figures.worst_peak == bound,
                  fmt::format("rank {}, step {}: some schedule occupies {} B, expected {}",
                              figures.rank, figures.step, figures.worst_peak, bound));
    }

  private:
    std::map<std::pair<bool, int>, std::uint64_t> bounds_;
};

/// A specimen brings one parameter's moments at a time.
void specimen_stays_within_bounds(const Story& story, const Subject& subject) {
    const Outcome outcome = run(story, subject);
    check_loads(outcome);
    PROP_TRUE(!outcome.steps.empty(), "nothing was measured");
    WorstBounds worst;
    for (const StepFigures& figures : outcome.steps) {
        const std::uint64_t rise = largest_touched_bytes(story, figures.restarted, figures.rank,
                                                         figures.step, figures.groups);
        check_step(figures, rise, 0);
        worst.check(figures, figures.before + rise);
    }
}

void swap_adamw_stays_within_bounds(const Story& story) {
    const Outcome outcome = run(story, swap_adamw());
    check_loads(outcome);
    PROP_TRUE(!outcome.steps.empty(), "nothing was measured");
    std::map<std::pair<bool, int>, Ring> kept;  // between steps, by run and rank
    WorstBounds worst;
    for (const StepFigures& figures : outcome.steps) {
        Ring& before = kept[{figures.restarted, figures.rank}];
        const Ring ring = ring_of(story, figures, before);
        const Ring after = story.keep_slots ? ring : Ring{};
        const std::uint64_t rise = std::max(ring.bytes(), before.bytes()) - before.bytes();
        const auto stays =
            static_cast<std::int64_t>(after.bytes()) - static_cast<std::int64_t>(before.bytes());
        check_step(figures, rise, stays);
        worst.check(figures, figures.before + rise);
        before = after;
    }
}

Property bounded(std::vector<std::string> defects) {
    return [subject = specimen(std::move(defects))](const Story& story) {
        specimen_stays_within_bounds(story, subject);
    };
}

TEST(PeakBound, HoldsForSwapAdamW) {
    must_hold(swap_adamw_stays_within_bounds);
}

TEST(PeakBound, HoldsForTheSpecimenWithoutDefects) {
    must_hold(bounded({}));
}

TEST(PeakBound, FindsMomentsCastToTheDevice) {
    must_be_caught(bounded({"device_cast"}), "load raises device memory");
}

TEST(PeakBound, FindsMomentsThatStayOnTheDevice) {
    must_be_caught(bounded({"device_cast", "cast_stays"}), "load keeps");
}

TEST(PeakBound, FindsMomentsMadeOnTheDevice) {
    must_be_caught(bounded({"device_init"}), "construction raises device memory");
}

TEST(PeakBound, FindsAStepThatHoldsTheWholeState) {
    must_be_caught(bounded({"slots_pile_up"}), "step raises device memory");
}

TEST(PeakBound, FindsAStepThatLeavesCopiesBehind) {
    must_be_caught(bounded({"slots_stay"}), "step keeps");
}

TEST(PeakBound, FindsFreesThatTheNextAllocationDoesNotWaitFor) {
    must_be_caught(bounded({"slots_unordered"}), "some schedule occupies");
}

}  // namespace
}  // namespace swaplab::properties
