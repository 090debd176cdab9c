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
        PROP_TRUE(figures.load_rise == 0,
                  fmt::format("{}: load raises device memory by {} B", who, figures.load_rise));
        PROP_TRUE(figures.load_kept == 0,
                  fmt::format("{}: load keeps {} B of device memory", who, figures.load_kept));
        PROP_TRUE(figures.load_pinned_kept == 0, fmt::format("{}: load keeps {} B of pinned memory",
                                                             who, figures.load_pinned_kept));
    }
}

void loads_stay_within_bounds(const Story& story, const Subject& subject) {
    check_loads(run(story, subject));
}

void swap_adamw_stays_within_bounds(const Story& story) {
    const Outcome outcome = run(story, swap_adamw());
    check_loads(outcome);
    PROP_TRUE(!outcome.steps.empty(), "nothing was measured");
    std::map<std::pair<bool, int>, Ring> kept;  // between steps, by run and rank
    for (const StepFigures& figures : outcome.steps) {
        Ring& before = kept[{figures.restarted, figures.rank}];
        const Ring ring = ring_of(story, figures, before);
        const Ring after = story.keep_slots ? ring : Ring{};
        const std::uint64_t rise = std::max(ring.bytes(), before.bytes()) - before.bytes();
        const auto stays =
            static_cast<std::int64_t>(after.bytes()) - static_cast<std::int64_t>(before.bytes());
        PROP_TRUE(figures.rise == rise && figures.kept == stays,
                  fmt::format("rank {}, step {}: device rises by {} B, expected {} B; {} B stay, "
                              "expected {} B",
                              figures.rank, figures.step, figures.rise, rise, figures.kept, stays));
        before = after;
    }
}

Property bounded_loads(std::vector<std::string> defects) {
    return [subject = specimen(std::move(defects))](const Story& story) {
        loads_stay_within_bounds(story, subject);
    };
}

TEST(PeakBound, HoldsForSwapAdamW) {
    must_hold(swap_adamw_stays_within_bounds);
}

TEST(PeakBound, HoldsForTheSpecimenWithoutDefects) {
    must_hold(bounded_loads({}));
}

TEST(PeakBound, FindsMomentsCastToTheDevice) {
    must_be_caught(bounded_loads({"device_cast"}));
}

TEST(PeakBound, FindsMomentsThatStayOnTheDevice) {
    must_be_caught(bounded_loads({"device_cast", "cast_stays"}));
}

TEST(PeakBound, FindsMomentsMadeOnTheDevice) {
    must_be_caught(bounded_loads({"device_init"}));
}

}  // namespace
}  // namespace swaplab::properties
