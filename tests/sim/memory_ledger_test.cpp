#include "swaplab/sim/memory_ledger.hpp"

#include "swaplab/sim/random.hpp"

#include <optional>

namespace swaplab::sim {
namespace {

constexpr auto device = MemoryKind::device;

std::vector<std::pair<std::string, std::uint64_t>> pairs_of(const std::vector<Holder>& holders) {
    std::vector<std::pair<std::string, std::uint64_t>> pairs;
    for (const Holder& holder : holders) {
        pairs.emplace_back(holder.tag, holder.requested_bytes);
    }
    return pairs;
}

using Pairs = std::vector<std::pair<std::string, std::uint64_t>>;

class Ledger : public ::testing::Test {
  protected:
    MemoryLedger::Id charge(std::uint64_t bytes, std::string_view tag = "x",
                            MemoryKind kind = device) {
        const auto id =
            ledger.charge(kind, bytes, (bytes + 255) / 256 * 256, tag, CallSite::here());
        ledger.occupy(id);
        return id;
    }
    void free(MemoryLedger::Id id) {
        ledger.discharge(id);
        ledger.vacate(id);
    }
    MemoryLedger ledger;
};

TEST_F(Ledger, KeepsBothSizesAndBothLifetimes) {
    const auto id = charge(100);
    EXPECT_EQ(ledger.now(device), 100U);
    EXPECT_EQ(ledger.now(device, Size::rounded), 256U);
    ledger.discharge(id);
    EXPECT_EQ(ledger.now(device), 0U);
    EXPECT_EQ(ledger.now(device, Size::requested, Lifetime::occupied), 100U);
    EXPECT_EQ(ledger.now(device, Size::rounded, Lifetime::occupied), 256U);
    ledger.vacate(id);
    EXPECT_EQ(ledger.now(device, Size::rounded, Lifetime::occupied), 0U);
    EXPECT_EQ(ledger.peak(device), 100U);
    EXPECT_EQ(ledger.peak(device, Size::rounded, Lifetime::occupied), 256U);
}

TEST_F(Ledger, AFreedRegionStillOccupiesWhileTheNextIsCharged) {
    const auto first = charge(256);
    ledger.discharge(first);
    const auto second = charge(256);
    ledger.vacate(first);
    EXPECT_EQ(ledger.peak(device), 256U);
    EXPECT_EQ(ledger.peak(device, Size::requested, Lifetime::occupied), 512U);
    free(second);
}

TEST_F(Ledger, OccupiedMemoryMayBeginAfterTheChargeEnds) {
    const auto id = ledger.charge(device, 100, 256, "x", CallSite::here());
    EXPECT_EQ(ledger.now(device, Size::requested, Lifetime::occupied), 0U);
    ledger.discharge(id);
    ledger.occupy(id);
    EXPECT_EQ(ledger.now(device, Size::requested, Lifetime::occupied), 100U);
    EXPECT_EQ(ledger.now(device), 0U);
    ledger.vacate(id);
    EXPECT_EQ(ledger.now(device, Size::requested, Lifetime::occupied), 0U);
}

TEST_F(Ledger, KindsDoNotMix) {
    charge(10, "a", MemoryKind::device);
    charge(20, "a", MemoryKind::pinned);
    charge(30, "a", MemoryKind::host);
    EXPECT_EQ(ledger.now(MemoryKind::device), 10U);
    EXPECT_EQ(ledger.now(MemoryKind::pinned), 20U);
    EXPECT_EQ(ledger.tagged(MemoryKind::host, "a"), 30U);
    EXPECT_EQ(ledger.live_count(MemoryKind::host), 1U);
}

TEST_F(Ledger, HoldersComeLargestFirstThenByTagThenByAge) {
    charge(10, "b");
    charge(30, "c");
    charge(10, "a");
    const auto freed = charge(90, "d");
    ledger.discharge(freed);
    EXPECT_EQ(pairs_of(ledger.holders(device, 9)), (Pairs{{"c", 30}, {"a", 10}, {"b", 10}}));
    EXPECT_EQ(ledger.holders(device, 2).size(), 2U);
    EXPECT_EQ(ledger.live_count(device), 3U);
}

TEST_F(Ledger, TagsSumUpToTheTotalAtEveryStep) {
    Rng rng(3);
    std::vector<MemoryLedger::Id> live;
    for (int step = 0; step < 400; ++step) {
        if (live.empty() || rng.below(2) == 0) {
            live.push_back(charge(1 + rng.below(1000), "tag " + std::to_string(rng.below(5))));
        } else {
            const std::size_t at = rng.below(live.size());
            free(live[at]);
            live.erase(live.begin() + static_cast<std::ptrdiff_t>(at));
        }
        std::uint64_t requested = 0;
        std::uint64_t rounded = 0;
        for (const Holder& holder : ledger.by_tag(device)) {
            requested += holder.requested_bytes;
            rounded += holder.rounded_bytes;
            EXPECT_EQ(holder.requested_bytes, ledger.tagged(device, holder.tag));
        }
        ASSERT_EQ(requested, ledger.now(device));
        ASSERT_EQ(rounded, ledger.now(device, Size::rounded));
    }
}

TEST_F(Ledger, TagsAtThePeakAreThoseOfTheMomentThePeakWasReached) {
    charge(100, "kept");
    const auto first = charge(50, "first");
    free(first);
    charge(50, "second");
    EXPECT_EQ(pairs_of(ledger.by_tag_at_peak(device)), (Pairs{{"kept", 100}, {"first", 50}}));
    charge(1, "third");
    EXPECT_EQ(pairs_of(ledger.by_tag_at_peak(device)),
              (Pairs{{"kept", 100}, {"second", 50}, {"third", 1}}));
}

TEST_F(Ledger, AWindowMeasuresRiseAndWhatStays) {
    const auto before = charge(100);
    const MemoryLedger::Window window(ledger);
    free(charge(40));
    charge(10);
    EXPECT_EQ(window.before(device), 100U);
    EXPECT_EQ(window.peak(device), 140U);
    EXPECT_EQ(window.rise(device), 40U);
    EXPECT_EQ(window.rise(device, Size::rounded), 256U);
    EXPECT_EQ(window.kept(device), 10);
    free(before);
    EXPECT_EQ(window.kept(device), -90);
}

TEST_F(Ledger, AWindowStartsItsPeakAtTheCurrentLevel) {
    const auto high = charge(1000);
    free(high);
    charge(1);
    const MemoryLedger::Window window(ledger);
    EXPECT_EQ(window.peak(device), 1U);
    EXPECT_EQ(window.rise(device), 0U);
    EXPECT_EQ(ledger.peak(device), 1000U);
}

TEST_F(Ledger, AnInnerWindowGivesItsPeakToTheOuterOne) {
    const MemoryLedger::Window outer(ledger);
    const auto outer_first = charge(10, "outer");
    {
        const MemoryLedger::Window inner(ledger);
        free(charge(30, "inner"));
        EXPECT_EQ(inner.rise(device), 30U);
        EXPECT_EQ(outer.rise(device), 40U);
        EXPECT_EQ(pairs_of(outer.by_tag_at_peak(device)), (Pairs{{"inner", 30}, {"outer", 10}}));
    }
    {
        const MemoryLedger::Window inner(ledger);
        free(charge(5, "later"));
        EXPECT_EQ(inner.rise(device), 5U);
    }
    EXPECT_EQ(outer.rise(device), 40U);
    EXPECT_EQ(pairs_of(outer.by_tag_at_peak(device)), (Pairs{{"inner", 30}, {"outer", 10}}));
    free(outer_first);
    EXPECT_EQ(ledger.peak(device), 40U);
}

TEST_F(Ledger, AnOuterPeakBeforeAnInnerWindowIsNotLost) {
    const MemoryLedger::Window outer(ledger);
    free(charge(100, "early"));
    std::optional<MemoryLedger::Window> inner(ledger);
    free(charge(10, "late"));
    EXPECT_EQ(inner->rise(device), 10U);
    inner.reset();
    EXPECT_EQ(outer.rise(device), 100U);
    EXPECT_EQ(pairs_of(outer.by_tag_at_peak(device)), (Pairs{{"early", 100}}));
}

TEST_F(Ledger, DischargingTwiceIsAProgrammersError) {
    const auto id = charge(10);
    ledger.discharge(id);
    EXPECT_DEATH(ledger.discharge(id), "is not charged");
}

TEST_F(Ledger, VacatingBeforeDischargingIsAProgrammersError) {
    const auto id = charge(10);
    EXPECT_DEATH(ledger.vacate(id), "still charged");
}

TEST_F(Ledger, OccupyingTwiceOrNeverIsAProgrammersError) {
    const auto id = charge(10);
    EXPECT_DEATH(ledger.occupy(id), "is occupied already");
    const auto never = ledger.charge(device, 10, 256, "x", CallSite::here());
    ledger.discharge(never);
    EXPECT_DEATH(ledger.vacate(never), "is not occupied");
}

}  // namespace
}  // namespace swaplab::sim
