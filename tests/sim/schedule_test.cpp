/// Schedules that search: pct, chosen by exploration, replay of a record.

#include "device_contract.hpp"

#include "swaplab/sim/explore.hpp"
#include "swaplab/sim/simulated_device.hpp"

#include <set>

namespace swaplab::sim {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

/// A byte is 1 for a moment and then 2; a copy on another stream should see 2 but waits for
/// nothing. Only a copy between the two fills sees 1: two orderings at once.
std::byte copy_seen_by(SimulatedDevice& device) {
    const Stream one(device, "one");
    const Stream two(device, "two");
    const Event allocated(device);
    DeviceBuffer source(device, 1, one, "source");
    const PinnedBuffer seen(device, 1, "seen");
    device.fill_async(source.data(), std::byte{0}, 1, one);
    device.record(allocated, one);
    device.wait(two, allocated);
    device.fill_async(source.data(), std::byte{1}, 1, one);
    for (int i = 0; i < 10; ++i) {
        device.launch({"other work", {}, {}, {}, {}}, one);
    }
    device.fill_async(source.data(), std::byte{2}, 1, one);
    device.copy_async(seen.data(), source.data(), 1, CopyDirection::device_to_host, two);
    device.synchronize(one.ref());
    device.synchronize(two.ref());
    return *seen.data();
}

SimulatedDeviceOptions with(Schedule schedule, std::uint64_t seed) {
    SimulatedDeviceOptions options;
    options.schedule = schedule;
    options.seed = seed;
    return options;
}

TEST(Pct, FindsABugOfDepthTwoThatFifoAndLatestMiss) {
    EXPECT_EQ(copy_seen_by(*make_simulated_device(with(Schedule::fifo, 1))), std::byte{2});
    EXPECT_EQ(copy_seen_by(*make_simulated_device(with(Schedule::latest, 1))), std::byte{2});
    int found = 0;
    for (std::uint64_t seed = 1; seed <= 200; ++seed) {
        SimulatedDeviceOptions options = with(Schedule::pct, seed);
        options.pct_depth = 2;
        options.pct_operations = 20;
        found += copy_seen_by(*make_simulated_device(options)) == std::byte{1} ? 1 : 0;
    }
    // At least 1 / (n k) = 1 / 40 of the runs, and here every change among 11 of 20 places.
    EXPECT_GE(found, 200 / 40);
}

TEST(Pct, OfDepthOneNeverLeavesTheStreamOfHighestPriority) {
    for (std::uint64_t seed = 1; seed <= 100; ++seed) {
        SimulatedDeviceOptions options = with(Schedule::pct, seed);
        options.pct_depth = 1;
        EXPECT_NE(copy_seen_by(*make_simulated_device(options)), std::byte{1});
    }
}

TEST(Schedules, AreEqualOverAThousandRepeats) {
    for (const Schedule schedule :
         {Schedule::fifo, Schedule::random, Schedule::latest, Schedule::pct}) {
        std::set<std::uint64_t> digests;
        for (int repeat = 0; repeat < 1000; ++repeat) {
            const auto device = make_simulated_device(with(schedule, 7));
            static_cast<void>(copy_seen_by(*device));
            digests.insert(device->execution_digest());
        }
        EXPECT_EQ(digests.size(), 1U) << name_of(schedule);
    }
}

/// Streams of `lengths` fills each, to memory of their own; `edges` say which stream waits for all
/// of which before it starts. Buffers are made beforehand and freed afterwards in one fixed order.
struct Shape {
    std::vector<int> lengths;
    std::vector<std::pair<std::size_t, std::size_t>> edges;
};

std::vector<std::string> names_that_ran(const SimulatedDevice& device) {
    std::vector<std::string> names;
    for (const ExecutedOperation& ran : device.execution_record()) {
        const TraceEvent& event = device.trace()[ran.operation];
        if (event.operation.starts_with("launch")) {
            names.push_back(event.operation + " " + event.stream);
        }
    }
    return names;
}

void run_shape(SimulatedDevice& device, const Shape& shape) {
    std::vector<Stream> streams;
    for (std::size_t i = 0; i < shape.lengths.size(); ++i) {
        streams.emplace_back(device, "s" + std::to_string(i));
    }
    for (std::size_t i = 0; i < shape.lengths.size(); ++i) {
        for (const auto& [from, to] : shape.edges) {
            if (to == i) {
                const Event event(device);
                device.record(event, streams[from]);
                device.wait(streams[to], event);
            }
        }
        for (int n = 0; n < shape.lengths[i]; ++n) {
            device.launch({std::to_string(n), {}, {}, {}, {}}, streams[i]);
        }
    }
    for (const Stream& stream : streams) {
        device.synchronize(stream.ref());
    }
}

TEST(Explore, RunsEveryLinearExtensionOnce) {
    // Counted by hand: interleavings are multinomial; a wait puts one chain behind another.
    const std::vector<std::pair<Shape, std::uint64_t>> cases{
        {{{}, {}}, 1},
        {{{5}, {}}, 1},
        {{{1, 1}, {}}, 2},
        {{{3, 2}, {}}, 10},
        {{{2, 2, 2}, {}}, 90},
        {{{1, 1, 1, 1}, {}}, 24},
        {{{3, 3}, {{0, 1}}}, 1},
        {{{1, 2, 2, 1}, {{0, 1}, {0, 2}, {1, 3}, {2, 3}}}, 6},
        {{{2, 2, 1}, {{0, 1}}}, 5},
    };
    for (const auto& [shape, expected] : cases) {
        std::set<std::vector<std::string>> orders;
        std::uint64_t runs = 0;
        const Exploration found = explore(
            {},
            [&](SimulatedDevice& device) {
                run_shape(device, shape);
                orders.insert(names_that_ran(device));
                ++runs;
            },
            1000);
        EXPECT_TRUE(found.complete);
        EXPECT_EQ(found.orders, expected);
        EXPECT_EQ(runs, expected);
        EXPECT_EQ(orders.size(), expected);
    }
}

TEST(Explore, OrdersWhatIsLeftAtTheEndToo) {
    const Exploration found = explore(
        {},
        [](SimulatedDevice& device) {
            const Stream one(device, "one");
            const Stream two(device, "two");
            for (const Stream* stream : {&one, &two}) {
                device.launch({"a", {}, {}, {}, {}}, *stream);
                device.launch({"b", {}, {}, {}, {}}, *stream);
            }
        },
        100);
    EXPECT_TRUE(found.complete);
    EXPECT_EQ(found.orders, 6U);
}

TEST(Explore, StopsAtItsLimitAndSaysSo) {
    const auto program = [](SimulatedDevice& device) { run_shape(device, {{3, 2}, {}}); };
    const Exploration cut = explore({}, program, 9);
    EXPECT_EQ(cut.orders, 9U);
    EXPECT_FALSE(cut.complete);
    const Exploration whole = explore({}, program, 10);
    EXPECT_EQ(whole.orders, 10U);
    EXPECT_TRUE(whole.complete);
}

TEST(Explore, FindsEveryOutcome) {
    std::set<std::byte> seen;
    const Exploration found = explore(
        {}, [&](SimulatedDevice& device) { seen.insert(copy_seen_by(device)); }, 1000);
    EXPECT_TRUE(found.complete);
    EXPECT_EQ(seen, (std::set{std::byte{0}, std::byte{1}, std::byte{2}}));
}

TEST(Explore, RefusesAProgramThatChangesByItself) {
    int run = 0;
    EXPECT_THROW(static_cast<void>(explore(
                     {},
                     [&](SimulatedDevice& device) {
                         ++run;
                         run_shape(device, {std::vector<int>(run == 1 ? 2 : 3, 2), {}});
                     },
                     100)),
                 DeviceError);
}

TEST(Explore, ADeviceOfScheduleChosenNeedsAChooser) {
    EXPECT_THROW(static_cast<void>(make_simulated_device(with(Schedule::chosen, 1))),
                 ArgumentError);
}

TEST(Replay, RunsInTheOrderOfTheRecordAndGivesTheSameBytes) {
    for (const Schedule schedule : {Schedule::random, Schedule::latest, Schedule::pct}) {
        for (std::uint64_t seed = 1; seed <= 30; ++seed) {
            const auto first = make_simulated_device(with(schedule, seed));
            const std::byte seen = copy_seen_by(*first);
            first->finish();
            SimulatedDeviceOptions options;
            options.schedule = Schedule::replay;
            options.record = first->execution_record();
            const auto again = make_simulated_device(options);
            EXPECT_EQ(copy_seen_by(*again), seen);
            again->finish();
            EXPECT_EQ(again->execution_digest(), first->execution_digest());
            EXPECT_EQ(again->execution_record(), options.record);
        }
    }
}

class ReplayOfAnother : public ::testing::Test {
  protected:
    ReplayOfAnother() {
        const auto device = make_simulated_device({});
        run_shape(*device, {{2, 2}, {}});
        device->finish();
        options.schedule = Schedule::replay;
        options.record = device->execution_record();
    }
    void expect_refused(const Shape& shape, const std::string& found) {
        const auto device = make_simulated_device(options);
        try {
            run_shape(*device, shape);
            device->finish();
            FAIL() << "the record was taken for another program";
        } catch (const ReplayDiverged& error) {
            EXPECT_THAT(error.what(), HasSubstr(found));
            EXPECT_EQ(error.fields().at(0).name, "step");
        }
    }
    SimulatedDeviceOptions options;
};

TEST_F(ReplayOfAnother, ProgramIsRefusedWhereItDiverges) {
    expect_refused({{2, 3}, {}}, "found ");
    expect_refused({{3, 2}, {}}, "found ");
    expect_refused({{2, 2}, {{0, 1}}}, "found ");
    expect_refused({{2, 2, 1}, {}}, "found launch 0 on s2");
    expect_refused({{2}, {}}, "expected operation ");
}

TEST_F(ReplayOfAnother, RunWithoutItsEndIsRefusedWhenMoreIsWaitedFor) {
    options.record.pop_back();
    expect_refused({{2, 2}, {}}, "a wait for more");
}

TEST_F(ReplayOfAnother, LengthIsRefusedAtTheEnd) {
    const auto device = make_simulated_device(options);
    EXPECT_THROW(device->finish(), ReplayDiverged);
}

TEST(Handles, AreUsedAgainWhileOperationsNeverAre) {
    const auto device = make_simulated_device({});
    std::set<std::uint64_t> handles;
    for (int round = 0; round < 5; ++round) {
        const Stream stream(*device, "stream");
        const Event event(*device);
        device->record(event, stream);
        device->synchronize(event.ref());
        handles.insert(stream.ref().handle());
    }
    EXPECT_EQ(handles.size(), 1U);
    std::set<std::uint64_t> ids;
    for (const ExecutedOperation& ran : device->execution_record()) {
        EXPECT_TRUE(ids.insert(ran.operation).second);
    }
    EXPECT_EQ(ids.size(), 5U);
}

}  // namespace
}  // namespace swaplab::sim
