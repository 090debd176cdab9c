/// What allocators keep beside what is allocated: PyTorch's two, and stream-ordered pools.

#include "device_contract.hpp"
#include "race_programs.hpp"

#include "swaplab/sim/simulated_device.hpp"

#include <set>

namespace swaplab::sim {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::uint64_t kib = std::uint64_t{1} << 10U;
constexpr std::uint64_t mib = std::uint64_t{1} << 20U;

using Bytes = AllocatorStats::Bytes;

/// Sizes matter here, not bytes.
SimulatedDeviceOptions with(AllocationPolicy policy, std::uint64_t capacity_bytes) {
    SimulatedDeviceOptions options;
    options.capacity_bytes = capacity_bytes;
    options.allocation = policy;
    options.poison = false;
    return options;
}

class Caching : public ::testing::Test {
  protected:
    std::unique_ptr<SimulatedDevice> owner =
        make_simulated_device(with(AllocationPolicy::caching, 64 * mib));
    SimulatedDevice& device = *owner;
    Stream stream{device, "stream"};
    Stream other{device, "other"};

    DeviceBuffer make(std::uint64_t bytes, const std::string& tag = "memory") {
        return {device, bytes, stream, tag};
    }
    AllocatorStats stats() const { return device.allocator_stats(); }
};

TEST_F(Caching, RoundsAsPyTorchDoes) {
    struct Row {
        std::uint64_t asked, allocated, reserved;
    };
    for (const Row& row :
         {Row{1, 512, 2 * mib}, Row{513, 1024, 2 * mib}, Row{mib, mib, 2 * mib},
          Row{mib + 1, mib + 512, 20 * mib}, Row{10 * mib - 1, 10 * mib, 10 * mib},
          Row{10 * mib, 10 * mib, 10 * mib}, Row{11 * mib + 512 * kib, 12 * mib, 12 * mib},
          Row{10 * mib + 512 * kib, 12 * mib, 12 * mib}}) {
        const auto fresh = make_simulated_device(with(AllocationPolicy::caching, 64 * mib));
        const Stream on(*fresh, "on");
        const DeviceBuffer memory(*fresh, row.asked, on, "memory");
        const AllocatorStats found = fresh->allocator_stats();
        EXPECT_EQ(found.requested.now, row.asked);
        EXPECT_EQ(found.reserved.now, row.reserved) << row.asked;
        EXPECT_EQ(fresh->memory_info().reserved_bytes, row.reserved);
        EXPECT_EQ(fresh->memory_info().free_bytes, 64 * mib - row.reserved);
    }
}

TEST_F(Caching, SplitsWhatIsLeftOver) {
    const DeviceBuffer small = make(1);
    const DeviceBuffer beside = make(2000);
    EXPECT_EQ(beside.data(), small.data() + 512);
    const DeviceBuffer large = make(3 * mib);
    const DeviceBuffer next = make(5 * mib);
    EXPECT_EQ(next.data(), large.data() + 3 * mib);
    EXPECT_EQ(stats().segments, 2U);
    EXPECT_EQ(stats().reserved.now, 22 * mib);
    EXPECT_EQ(stats().allocated.now, 512 + 2048 + 8 * mib);
}

TEST_F(Caching, ALargeBlockIsNotSplitForAMegabyteOrLess) {
    { const DeviceBuffer gone = make(12 * mib); }
    const DeviceBuffer memory = make(11 * mib);
    EXPECT_EQ(stats().allocated.now, 12 * mib);
    EXPECT_EQ(stats().requested.now, 11 * mib);
}

TEST_F(Caching, TakesTheSmallestBlockThatSuffices) {
    std::byte* twelve = nullptr;
    {
        const DeviceBuffer a = make(16 * mib);
        const DeviceBuffer b = make(12 * mib);
        twelve = b.data();
    }
    EXPECT_EQ(make(12 * mib).data(), twelve);
    EXPECT_EQ(stats().reserved.now, 28 * mib);
}

TEST_F(Caching, JoinsNeighboursThatAreFreed) {
    std::byte* first = nullptr;
    {
        const DeviceBuffer a = make(4 * mib);
        const DeviceBuffer b = make(4 * mib);
        const DeviceBuffer c = make(4 * mib);
        first = a.data();
    }
    EXPECT_EQ(make(9 * mib).data(), first);
    EXPECT_EQ(stats().segments, 1U);
}

TEST_F(Caching, FreedMemoryServesItsOwnStreamOnly) {
    std::byte* freed = nullptr;
    {
        const DeviceBuffer gone = make(12 * mib);
        freed = gone.data();
    }
    const DeviceBuffer foreign(device, 12 * mib, other, "foreign");
    EXPECT_NE(foreign.data(), freed);
    EXPECT_EQ(stats().reserved.now, 24 * mib);
    const DeviceBuffer own = make(12 * mib);
    EXPECT_EQ(own.data(), freed);
    EXPECT_EQ(stats().reserved.now, 24 * mib);
}

TEST_F(Caching, MemoryFreedOnAnotherStreamComesBackWhenThatStreamHasRun) {
    {
        DeviceBuffer memory = make(12 * mib);
        device.synchronize(stream.ref());
        device.fill_async(memory.data(), std::byte{1}, 8, other);
        memory.set_stream(other);
    }
    EXPECT_EQ(stats().allocated.now, 0U);
    EXPECT_EQ(stats().active.now, 12 * mib);
    const DeviceBuffer second = make(12 * mib);
    EXPECT_EQ(stats().reserved.now, 24 * mib) << "the first is still in use";
    EXPECT_EQ(stats().allocated.peak, 12 * mib);
    EXPECT_EQ(stats().active.peak, 24 * mib);
    device.synchronize(other.ref());
    const DeviceBuffer third = make(12 * mib);
    EXPECT_EQ(stats().reserved.now, 24 * mib);
    EXPECT_EQ(stats().active.now, 24 * mib);
    EXPECT_THAT(device.findings(), IsEmpty());
}

TEST_F(Caching, ReleasesWhatIsCachedBeforeItGivesUp) {
    { const DeviceBuffer gone = make(40 * mib); }
    EXPECT_EQ(stats().reserved.now, 40 * mib);
    const DeviceBuffer large(device, 60 * mib, other, "large");
    EXPECT_EQ(stats().retries, 1U);
    EXPECT_EQ(stats().reserved.now, 60 * mib);
    EXPECT_EQ(stats().reserved.peak, 60 * mib);
    EXPECT_THROW(make(6 * mib), OutOfDeviceMemory);
}

TEST_F(Caching, ADestroyedStreamsMemoryIsNotTheNextStreams) {
    {
        const Stream brief(device, "brief");
        const DeviceBuffer gone(device, 12 * mib, brief, "gone");
    }
    const Stream next(device, "next");
    const DeviceBuffer memory(device, 12 * mib, next, "memory");
    EXPECT_EQ(stats().reserved.now, 24 * mib);
}

// PrimeIntellect-ai/prime-rl#2154: allocated 2.9 GB, reserved 14.4 GB. Weights and the moments that
// were made beside them share segments, so that dropping the moments gives nothing back.
TEST(CachingReplay, Allocated29Reserved144) {
    constexpr std::uint64_t gib = 1024 * mib;
    SimulatedDeviceOptions options = with(AllocationPolicy::caching, 16 * gib);
    options.check_accesses = false;
    const auto device = make_simulated_device(options);
    const Stream stream(*device, "stream");
    std::vector<DeviceBuffer> weights;
    std::vector<DeviceBuffer> moments;
    for (int layer = 0; layer < 737; ++layer) {
        weights.emplace_back(*device, 4 * mib, stream, "weight");
        moments.emplace_back(*device, 8 * mib, stream, "exp_avg");
        moments.emplace_back(*device, 8 * mib, stream, "exp_avg_sq");
    }
    moments.clear();
    AllocatorStats stats = device->allocator_stats();
    EXPECT_EQ(stats.allocated.now, 737 * 4 * mib);  // 2.9 GiB
    EXPECT_EQ(stats.reserved.now, 737 * 20 * mib);  // 14.4 GiB
    try {
        const DeviceBuffer activations(*device, 2 * gib, stream, "activations");
        FAIL() << "fits";
    } catch (const OutOfDeviceMemory& error) {
        EXPECT_EQ(error.report().charged_bytes, stats.allocated.now);
        EXPECT_EQ(error.report().reserved_bytes, stats.reserved.now);
        EXPECT_EQ(error.report().largest_hole_bytes, 16 * gib - stats.reserved.now);
        EXPECT_THAT(error.what(), HasSubstr("reserved 15,456,010,240 B (14740.0 MiB), of which "
                                            "3,091,202,048 B (2948.0 MiB) are allocated"));
        EXPECT_THAT(error.fields(), Contains(ErrorField{"memory", "device"}));
    }
    EXPECT_EQ(device->allocator_stats().retries, 1U);
    weights.clear();
    EXPECT_EQ(device->allocator_stats().allocated.now, 0U);
    const DeviceBuffer activations(*device, 14 * gib, stream, "activations");
    EXPECT_EQ(device->allocator_stats().reserved.now, 14 * gib);
}

TEST(OutsideOfPools, WhatIsThereIsMissingToThemAndTheyGiveNothingBackForIt) {
    for (const auto policy : {AllocationPolicy::caching, AllocationPolicy::stream_ordered}) {
        auto options = with(policy, 64 * mib);
        options.release_threshold_bytes = 64 * mib;
        const auto device = make_simulated_device(options);
        const Stream stream(*device, "stream");
        { const DeviceBuffer kept(*device, 24 * mib, stream, "kept"); }
        const auto outside = [&](std::uint64_t bytes) {
            return device->allocate_outside_pool(bytes, stream.ref(), "workspace");
        };
        try {
            static_cast<void>(outside(41 * mib));
            FAIL() << "fits beside what " << name_of(policy) << " keeps";
        } catch (const OutOfDeviceMemory& error) {
            EXPECT_EQ(error.report().reserved_bytes, 24 * mib);
        }
        void* const workspace = outside(40 * mib);
        EXPECT_EQ(device->allocator_stats().reserved.now, 24 * mib);
        EXPECT_EQ(device->memory_info().free_bytes, 0U);
        EXPECT_EQ(device->ledger().tagged(MemoryKind::device, "workspace"), 40 * mib);
        EXPECT_THROW(DeviceBuffer(*device, 25 * mib, stream, "more"), OutOfDeviceMemory);
        device->deallocate(workspace, stream.ref());
        device->synchronize(stream.ref());
        const DeviceBuffer more(*device, 60 * mib, stream, "more");
        device->finish();
    }
}

TEST(OutsideOfPools, PeaksOfWhatIsReservedCountFromWhereTheyWereRestarted) {
    for (const auto policy : {AllocationPolicy::raw, AllocationPolicy::caching}) {
        const auto device = make_simulated_device(with(policy, 64 * mib));
        const Stream stream(*device, "stream");
        { const DeviceBuffer first(*device, 24 * mib, stream, "first"); }
        const std::uint64_t kept = policy == AllocationPolicy::raw ? 0 : 24 * mib;
        EXPECT_EQ(device->allocator_stats().reserved, (Bytes{kept, 24 * mib}));
        device->restart_reserved_peaks();
        EXPECT_EQ(device->allocator_stats().reserved, (Bytes{kept, kept}));
        const DeviceBuffer second(*device, 12 * mib, stream, "second");
        EXPECT_EQ(device->allocator_stats().reserved.peak, std::max(kept, 12 * mib));
    }
}

class Ordered : public ::testing::Test {
  protected:
    static SimulatedDeviceOptions options(std::uint64_t seed = 1) {
        SimulatedDeviceOptions made = with(AllocationPolicy::stream_ordered, 16 * mib);
        made.seed = seed;
        return made;
    }
    std::unique_ptr<SimulatedDevice> owner = make_simulated_device(options());
    SimulatedDevice& device = *owner;
    Stream stream{device, "stream"};
    Stream other{device, "other"};

    AllocatorStats stats() const { return device.allocator_stats(); }
};

TEST_F(Ordered, KeepsPagesUntilTheHostSynchronizes) {
    { const DeviceBuffer gone(device, 5 * mib, stream, "gone"); }
    EXPECT_EQ(stats().allocated.now, 0U);
    EXPECT_EQ(stats().reserved, (Bytes{6 * mib, 6 * mib}));
    device.synchronize(stream.ref());
    EXPECT_EQ(stats().reserved, (Bytes{0, 6 * mib}));
}

TEST_F(Ordered, KeepsAsMuchAsItsThresholdSays) {
    SimulatedDeviceOptions keeping = options();
    keeping.release_threshold_bytes = 4 * mib;
    const auto keeper = make_simulated_device(keeping);
    const Stream on(*keeper, "on");
    for (int i = 0; i < 2; ++i) {
        const DeviceBuffer a(*keeper, 4 * mib, on, "a");
        const DeviceBuffer b(*keeper, 4 * mib, on, "b");
    }
    keeper->synchronize(on.ref());
    EXPECT_EQ(keeper->allocator_stats().reserved, (Bytes{4 * mib, 8 * mib}));
}

TEST_F(Ordered, WorkOrderedAfterAFreeGetsItsMemory) {
    std::byte* freed = nullptr;
    const Event event(device);
    {
        const DeviceBuffer gone(device, 2 * mib, stream, "gone");
        freed = gone.data();
    }
    const DeviceBuffer unordered(device, 2 * mib, other, "unordered");
    EXPECT_NE(unordered.data(), freed);
    device.record(event, stream);
    device.wait(other, event);
    const DeviceBuffer ordered(device, 2 * mib, other, "ordered");
    EXPECT_EQ(ordered.data(), freed);
    EXPECT_EQ(stats().reserved.now, 4 * mib);
}

TEST_F(Ordered, WaitsForAFreeBeforeMemoryRunsOut) {
    const PinnedBuffer seen(device, 64, "seen");
    {
        const DeviceBuffer gone(device, 16 * mib, stream, "gone");
        device.fill_async(gone.data(), std::byte{1}, 64, stream);
        device.copy_async(seen.data(), gone.data(), 64, CopyDirection::device_to_host, stream);
    }
    const DeviceBuffer fresh(device, 16 * mib, other, "fresh");
    device.fill_async(fresh.data(), std::byte{2}, 64, other);
    EXPECT_EQ(stats().reserved.peak, 16 * mib);
    EXPECT_EQ(stats().retries, 1U);
    std::vector<std::string> waits;
    for (const TraceEvent& event : device.trace()) {
        if (event.operation == "wait") {
            waits.push_back(event.stream);
        }
    }
    EXPECT_EQ(waits, std::vector<std::string>{"other"});
    device.synchronize(other.ref());
    device.synchronize(stream.ref());
    EXPECT_THAT(contents(seen), Each(std::byte{1}));
    EXPECT_THAT(device.findings(), IsEmpty());
}

TEST_F(Ordered, JoinsWhatSeveralStreamsFreedBeforeMemoryRunsOut) {
    const auto small = make_simulated_device(with(AllocationPolicy::stream_ordered, 6 * mib));
    const Stream one(*small, "one");
    const Stream two(*small, "two");
    const Stream three(*small, "three");
    {
        const DeviceBuffer most(*small, 5 * mib, one, "most");
        const DeviceBuffer rest(*small, mib, two, "rest");
    }
    const DeviceBuffer all(*small, 6 * mib, three, "all");
    EXPECT_EQ(small->allocator_stats().segments, 1U);
    EXPECT_EQ(small->allocator_stats().retries, 1U);
    small->synchronize(three.ref());
    EXPECT_EQ(small->execution_record().size(), 8U) << "5 of memory, 2 waits, 1 record";
}

TEST_F(Ordered, AnOutOfMemoryReportSaysWhetherWaitingSuffices) {
    const auto ask = [this] {
        try {
            const DeviceBuffer large(device, 16 * mib, stream, "large");
        } catch (const OutOfDeviceMemory& error) {
            return std::optional(error.report());
        }
        return std::optional<OutOfDeviceMemory::Report>();
    };
    std::optional<DeviceBuffer> kept(std::in_place, device, 2 * mib, other, "kept");
    { const DeviceBuffer gone(device, 8 * mib, stream, "gone"); }
    ASSERT_TRUE(ask());
    EXPECT_FALSE(ask()->waiting_suffices) << "2 MiB are in use";
    EXPECT_EQ(ask()->pending_bytes, 8 * mib);
    kept.reset();
    ASSERT_TRUE(ask());
    EXPECT_TRUE(ask()->waiting_suffices);
    device.synchronize(stream.ref());
    device.synchronize(other.ref());
    EXPECT_FALSE(ask());
}

/// Whether a stream gets what another one freed, and no order says that it may.
bool reuses_by_luck(SimulatedDevice& device) {
    const Stream one(device, "one");
    const Stream two(device, "two");
    std::byte* freed = nullptr;
    {
        const DeviceBuffer gone(device, 2 * mib, one, "gone");
        freed = gone.data();
    }
    const Event far(device);
    device.launch({"other work", {}, {}, {}, {}}, two);
    device.record(far, two);
    device.synchronize(far.ref());
    const DeviceBuffer next(device, 2 * mib, two, "next");
    return next.data() == freed;
}

TEST_F(Ordered, ReuseOfWhatHappensToBeFreeIsTheSeedsChoice) {
    std::set<bool> seen;
    for (std::uint64_t seed = 1; seed <= 32; ++seed) {
        SimulatedDeviceOptions chosen = options(seed);
        chosen.schedule = Schedule::random;
        const auto first = make_simulated_device(chosen);
        const bool reused = reuses_by_luck(*first);
        seen.insert(reused);
        first->finish();
        chosen.schedule = Schedule::replay;
        chosen.record = first->execution_record();
        const auto again = make_simulated_device(chosen);
        EXPECT_EQ(reuses_by_luck(*again), reused);
        again->finish();
    }
    EXPECT_EQ(seen.size(), 2U);
}

// Programs that are correct stay so, and see the same bytes, whoever hands out their memory.
TEST(Policies, ChangeNothingThatACorrectProgramSees) {
    for (std::uint64_t seed = 1; seed <= 60; ++seed) {
        const race_programs::Program program = race_programs::make_correct(seed);
        const auto plain = make_simulated_device({});
        const std::vector<std::byte> expected = race_programs::run(program, *plain);
        for (const AllocationPolicy policy :
             {AllocationPolicy::caching, AllocationPolicy::stream_ordered}) {
            for (const Schedule schedule : {Schedule::random, Schedule::latest}) {
                SimulatedDeviceOptions options;
                options.schedule = schedule;
                options.seed = seed;
                options.allocation = policy;
                options.capacity_bytes = 8 * mib;
                const auto device = make_simulated_device(options);
                ASSERT_EQ(race_programs::run(program, *device), expected);
                device->finish();
                ASSERT_THAT(device->findings(), IsEmpty())
                    << "seed " << seed << ", " << name_of(policy) << ": "
                    << device->findings().at(0).text;
                EXPECT_EQ(device->allocator_stats().allocated.now, 0U);
                EXPECT_EQ(
                    device->ledger().now(MemoryKind::device, Size::rounded, Lifetime::occupied),
                    0U);
                EXPECT_LE(device->allocator_stats().reserved.peak, 8 * mib);
            }
        }
    }
}

TEST(Policies, HaveTheSameWorstPeak) {
    std::set<std::uint64_t> peaks;
    for (const AllocationPolicy policy :
         {AllocationPolicy::raw, AllocationPolicy::caching, AllocationPolicy::stream_ordered}) {
        const auto device = make_simulated_device(with(policy, 64 * mib));
        const Stream one(*device, "one");
        const Stream two(*device, "two");
        { const DeviceBuffer a(*device, 1000, one, "a"); }
        { const DeviceBuffer b(*device, 3000, two, "b"); }
        peaks.insert(device->worst_peak().bytes);
    }
    EXPECT_EQ(peaks, std::set<std::uint64_t>{4000});
}

TEST(Policies, AreFoundByName) {
    for (const AllocationPolicy policy :
         {AllocationPolicy::raw, AllocationPolicy::caching, AllocationPolicy::stream_ordered}) {
        EXPECT_EQ(allocation_policy_from_name(name_of(policy)), policy);
    }
    EXPECT_EQ(allocation_policy_from_name("c10"), std::nullopt);
    for (const PinnedPolicy policy : {PinnedPolicy::exact, PinnedPolicy::power_of_two}) {
        EXPECT_EQ(pinned_policy_from_name(name_of(policy)), policy);
    }
    EXPECT_EQ(pinned_policy_from_name("slab"), std::nullopt);
}

SimulatedDeviceOptions pinned(PinnedPolicy policy, std::uint64_t quota_bytes) {
    SimulatedDeviceOptions options;
    options.pinned = policy;
    options.pinned_quota_bytes = quota_bytes;
    return options;
}

// sgl-project/sglang#36562: 20.4 GiB asked, 32 GiB pinned.
TEST(Pinned, PowersOfTwoWasteWhatASlabDoesNot) {
    constexpr std::uint64_t asked = 20 * mib + 400 * kib;
    const auto rounding = make_simulated_device(pinned(PinnedPolicy::power_of_two, 64 * mib));
    const auto exact = make_simulated_device(pinned(PinnedPolicy::exact, 64 * mib));
    const PinnedBuffer a(*rounding, asked, "moments");
    const PinnedBuffer b(*exact, asked, "moments");
    EXPECT_EQ(rounding->allocator_stats().pinned_reserved.now, 32 * mib);
    EXPECT_EQ(rounding->ledger().now(MemoryKind::pinned, Size::rounded), 32 * mib);
    EXPECT_LT(exact->allocator_stats().pinned_reserved.now, asked + asked / 100);
}

TEST(Pinned, PowersOfTwoAreKeptAndServeTheirOwnSize) {
    const auto device = make_simulated_device(pinned(PinnedPolicy::power_of_two, 64 * mib));
    std::byte* kept = nullptr;
    {
        PinnedBuffer gone(*device, 3 * mib, "gone");
        write_count(gone, 1);
        kept = gone.data();
    }
    EXPECT_EQ(device->ledger().now(MemoryKind::pinned), 0U);
    EXPECT_EQ(device->allocator_stats().pinned_reserved, (Bytes{4 * mib, 4 * mib}));
    const PinnedBuffer other(*device, mib, "other");
    const PinnedBuffer same(*device, 4 * mib, "same");
    EXPECT_EQ(same.data(), kept);
    EXPECT_THAT(contents(same), Each(std::byte{0}));
    EXPECT_EQ(device->allocator_stats().pinned_reserved.now, 5 * mib);
}

TEST(Pinned, AQuotaNamesWhoHoldsPinnedMemory) {
    for (const PinnedPolicy policy : {PinnedPolicy::exact, PinnedPolicy::power_of_two}) {
        const auto device = make_simulated_device(pinned(policy, mib));
        PinnedBuffer moments(*device, 512 * kib, "exp_avg");
        const PinnedBuffer other(*device, 256 * kib, "exp_avg_sq");
        try {
            const PinnedBuffer refused(*device, 300 * kib, "max_exp_avg_sq");
            FAIL() << "fits";
        } catch (const OutOfDeviceMemory& error) {
            EXPECT_EQ(error.report().memory, "pinned");
            EXPECT_EQ(error.report().tag, "max_exp_avg_sq");
            EXPECT_EQ(error.report().capacity_bytes, mib);
            EXPECT_EQ(error.report().free_bytes(), 256 * kib);
            ASSERT_EQ(error.holders().size(), 2U);
            EXPECT_EQ(error.holders()[0].tag, "exp_avg");
            EXPECT_THAT(error.what(), HasSubstr("out of pinned memory"));
            EXPECT_THAT(error.what(), HasSubstr("allocation_policy_test.cpp"));
        }
        moments = {};
        if (policy == PinnedPolicy::exact) {
            const PinnedBuffer fits(*device, 700 * kib, "fits");
        } else {
            EXPECT_THROW(PinnedBuffer(*device, 700 * kib, "kept pages"), OutOfDeviceMemory);
        }
    }
}

}  // namespace
}  // namespace swaplab::sim
