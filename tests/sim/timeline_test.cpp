#include "swaplab/sim/timeline.hpp"

#include "swaplab/sim/buffer.hpp"
#include "swaplab/sim/error.hpp"
#include "swaplab/sim/random.hpp"
#include "swaplab/sim/simulated_device.hpp"
#include "swaplab/sim/stream.hpp"

#include <algorithm>
#include <cmath>
#include <map>

namespace swaplab::sim {
namespace {

using ::testing::IsEmpty;

/// One byte takes a nanosecond on every engine.
DeviceProfile unit() {
    DeviceProfile profile;
    profile.name = "unit";
    return profile;
}

std::vector<OperationTime> timed(const TimedGraph& graph, const DeviceProfile& profile) {
    return timeline({&graph, 1}, profile).at(0);
}

double end_seconds(const std::vector<OperationTime>& times) {
    std::uint64_t last = 0;
    for (const OperationTime& time : times) {
        last = std::max(last, time.end_picoseconds);
    }
    return static_cast<double>(last) * 1e-12;
}

/// `buckets` buckets that are uploaded, updated and downloaded through `slots` slots.
TimedGraph swap_pipeline(std::uint32_t buckets, std::uint32_t slots, std::uint64_t copy_bytes,
                         std::uint64_t kernel_bytes) {
    TimedGraph graph;
    for (std::uint32_t bucket = 0; bucket < buckets; ++bucket) {
        const std::uint32_t upload = 3 * bucket;
        graph.operations.push_back({Engine::upload, copy_bytes});
        graph.operations.push_back({Engine::compute, kernel_bytes});
        graph.operations.push_back({Engine::download, copy_bytes});
        graph.edges.push_back({upload, upload + 1});
        graph.edges.push_back({upload + 1, upload + 2});
        if (bucket >= slots) {
            graph.edges.push_back({upload + 2 - 3 * slots, upload});
        }
    }
    return graph;
}

/// Seconds from bucket to bucket in the middle of a long pipeline.
double period(std::uint32_t slots, const DeviceProfile& profile, std::uint64_t copy_bytes,
              std::uint64_t kernel_bytes) {
    const auto times = timed(swap_pipeline(400, slots, copy_bytes, kernel_bytes), profile);
    return static_cast<double>(times[3 * 300 + 2].end_picoseconds -
                               times[3 * 100 + 2].end_picoseconds) /
           200 * 1e-12;
}

TEST(Timeline, OfNothingIsEmpty) {
    EXPECT_THAT(timed({}, unit()), IsEmpty());
    EXPECT_THAT(timeline({}, unit()), IsEmpty());
}

TEST(Timeline, ACopyTakesItsSetUpAndThenItsBytes) {
    DeviceProfile profile = unit();
    profile.copy_setup_seconds = 5e-9;
    const auto times = timed({{{Engine::upload, 100}, {Engine::upload, 0}}, {}}, profile);
    EXPECT_EQ(times[0], (OperationTime{0, 105'000}));
    EXPECT_EQ(times[1], (OperationTime{105'000, 110'000}));
}

TEST(Timeline, AKernelTakesItsLaunchAndThenItsBytes) {
    DeviceProfile profile = unit();
    profile.launch_seconds = 3e-9;
    profile.kernel_bytes_per_second = 2e9;
    EXPECT_EQ(timed({{{Engine::compute, 100}}, {}}, profile)[0], (OperationTime{0, 53'000}));
}

TEST(Timeline, AnEdgeMakesTheLaterOneWaitAndMarkersTakeNoTime) {
    const TimedGraph graph{{{Engine::upload, 10}, {Engine::none, 7}, {Engine::download, 20}},
                           {{0, 1}, {1, 2}}};
    const auto times = timed(graph, unit());
    EXPECT_EQ(times[1], (OperationTime{10'000, 10'000}));
    EXPECT_EQ(times[2], (OperationTime{10'000, 30'000}));
}

TEST(Timeline, AnEngineTakesTheOneIssuedFirstOfThoseThatMayRun) {
    const TimedGraph graph{{{Engine::compute, 10}, {Engine::upload, 5}, {Engine::upload, 3}},
                           {{0, 1}}};
    const auto times = timed(graph, unit());
    EXPECT_EQ(times[2].end_picoseconds, 3'000U);
    EXPECT_EQ(times[1].begin_picoseconds, 10'000U);
}

TEST(Timeline, BothDirectionsAtOnceGoAtTheirRatesForThat) {
    DeviceProfile profile = unit();
    profile.upload_beside_download_bytes_per_second = 0.5e9;
    // 10 ns together: the download is done, the upload half; the other half goes alone.
    const auto times = timed({{{Engine::upload, 10}, {Engine::download, 10}}, {}}, profile);
    EXPECT_EQ(times[1].end_picoseconds, 10'000U);
    EXPECT_EQ(times[0].end_picoseconds, 15'000U);
}

TEST(Timeline, RanksShareTheMemoryOfTheirHost) {
    const std::vector<TimedGraph> ranks(4, TimedGraph{{{Engine::upload, 100}}, {}});
    DeviceProfile profile = unit();
    EXPECT_EQ(timeline(ranks, profile)[3][0].end_picoseconds, 100'000U);
    profile.host_memory_bytes_per_second = 2e9;
    EXPECT_EQ(timeline(ranks, profile)[3][0].end_picoseconds, 200'000U);
}

/// The period of a swap pipeline with S slots is max(h, k, d, (h + k + d) / S).
TEST(Timeline, ASwapPipelineKeepsItsLaw) {
    for (const std::uint32_t slots : {1U, 2U, 3U, 4U}) {
        for (const std::uint64_t kernel_bytes : {0U, 300U, 1'000U, 3'000U}) {
            const double copy = 1'000e-9;
            const double kernel = static_cast<double>(kernel_bytes) * 1e-9;
            const double law =
                std::max({copy, kernel, (2 * copy + kernel) / static_cast<double>(slots)});
            EXPECT_NEAR(period(slots, unit(), 1'000, kernel_bytes), law, law * 1e-3)
                << slots << " slots, kernel of " << kernel_bytes << " ns";
        }
    }
}

TEST(Timeline, EveryOperationRunsOnceInOrderAndOneAtATimePerEngine) {
    Rng random(7);
    for (int round = 0; round < 200; ++round) {
        TimedGraph graph;
        const auto count = static_cast<std::uint32_t>(random.below(40));
        for (std::uint32_t i = 0; i < count; ++i) {
            graph.operations.push_back(
                {static_cast<Engine>(random.below(4)), 1 + random.below(50)});
            for (std::uint64_t k = random.below(3); i > 0 && k > 0; --k) {
                graph.edges.push_back({static_cast<std::uint32_t>(random.below(i)), i});
            }
        }
        const auto times = timed(graph, unit());
        for (const OrderEdge& edge : graph.edges) {
            EXPECT_LE(times[edge.before].end_picoseconds, times[edge.after].begin_picoseconds);
        }
        std::map<Engine, std::map<std::uint64_t, std::uint64_t>> busy;
        for (std::uint32_t i = 0; i < count; ++i) {
            if (graph.operations[i].engine != Engine::none) {
                EXPECT_LT(times[i].begin_picoseconds, times[i].end_picoseconds);
                EXPECT_TRUE(busy[graph.operations[i].engine]
                                .emplace(times[i].begin_picoseconds, times[i].end_picoseconds)
                                .second);
            }
        }
        for (const auto& [engine, spans] : busy) {
            std::uint64_t end = 0;
            for (const auto& [begin, ends] : spans) {
                EXPECT_LE(end, begin);
                end = ends;
            }
        }
    }
}

TEST(Timeline, EqualInputGivesEqualOutput) {
    const TimedGraph graph = swap_pipeline(50, 3, 12'345, 6'789);
    EXPECT_EQ(timed(graph, unit()), timed(graph, unit()));
    EXPECT_GT(end_seconds(timed(graph, unit())), 50 * 12'345e-9);
}

TEST(Timeline, RefusesEdgesBackwardsAndImpossibleProfiles) {
    const TimedGraph backwards{{{Engine::none, 0}, {Engine::none, 0}}, {{1, 0}}};
    EXPECT_THROW(timed(backwards, unit()), ArgumentError);
    const TimedGraph outside{{{Engine::none, 0}}, {{0, 1}}};
    EXPECT_THROW(timed(outside, unit()), ArgumentError);
    DeviceProfile profile = unit();
    profile.upload_bytes_per_second = 0;
    EXPECT_THROW(timed({}, profile), ArgumentError);
    profile = unit();
    profile.launch_seconds = std::nan("");
    EXPECT_THROW(timed({}, profile), ArgumentError);
}

TEST(Timeline, ARecordedRunIsTimedByItsStreamsAndEvents) {
    const auto device = make_simulated_device({});
    const Stream first(*device, "first");
    const Stream second(*device, "second");
    const Event uploaded(*device);
    const DeviceBuffer memory(*device, 1000, first, "memory");
    const PinnedBuffer up(*device, 1000, "up");
    const PinnedBuffer down(*device, 1000, "down");
    const Kernel kernel{
        "twice", {{memory.data(), 1000}}, {{memory.data(), 1000}}, [](auto&) {}, {}};
    device->copy_async(memory.data(), up.data(), 1000, CopyDirection::host_to_device, first);
    device->launch(kernel, first);
    device->record(uploaded, first);
    device->wait(second, uploaded);
    device->copy_async(down.data(), memory.data(), 1000, CopyDirection::device_to_host, second);
    const auto last = static_cast<std::size_t>(device->issue_point().operations - 1);
    device->synchronize(second);
    device->copy_async(memory.data(), up.data(), 1000, CopyDirection::host_to_device, first);
    const auto again = static_cast<std::size_t>(device->issue_point().operations - 1);
    device->synchronize(first);
    const std::vector<OperationTime> times = timed(device->timed_graph(), unit());
    EXPECT_EQ(times.size(), device->trace().size());
    EXPECT_EQ(times[last].begin_picoseconds, 3'000'000U);  // behind the upload and 2000 B of kernel
    EXPECT_EQ(times[last].end_picoseconds, 4'000'000U);
    EXPECT_EQ(times[again].end_picoseconds, 5'000'000U);  // the host waited for the download
}

}  // namespace
}  // namespace swaplab::sim
