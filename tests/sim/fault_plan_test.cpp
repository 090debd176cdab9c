#include "swaplab/sim/fault_plan.hpp"

#include "swaplab/sim/buffer.hpp"
#include "swaplab/sim/simulated_device.hpp"
#include "swaplab/sim/stream.hpp"
#include "swaplab/sim/world.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

namespace swaplab::sim {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Fault fault_at(const char* operation, std::uint64_t ordinal,
               FaultAction action = FaultAction::fail) {
    Fault fault;
    fault.operation = operation;
    fault.ordinal = ordinal;
    fault.action = action;
    return fault;
}

class Faults : public ::testing::Test {
  protected:
    std::unique_ptr<SimulatedDevice> inner = make_simulated_device({.capacity_bytes = 1U << 20U});
    FaultInjector injector{0};
    std::unique_ptr<Device> owner = make_faulty_device(*inner, injector);
    Device& device = *owner;
    Stream stream{device, "stream"};

    bool allocates(std::uint64_t bytes = 256, const char* tag = "memory") {
        try {
            const DeviceBuffer buffer(device, bytes, stream, tag);
            return true;
        } catch (const OutOfDeviceMemory& error) {
            EXPECT_EQ(error.report().tag, tag);
            EXPECT_EQ(error.report().requested_bytes, bytes);
            return false;
        }
    }
    std::vector<bool> allocations(int count) {
        std::vector<bool> out;
        for (int i = 0; i < count; ++i) {
            out.push_back(allocates());
        }
        return out;
    }
    DeviceBuffer filled(std::byte value) {
        DeviceBuffer buffer(device, 8, stream, "buffer");
        device.fill_async(buffer.data(), value, 8, stream);
        return buffer;
    }
    std::optional<DeviceError> error_of(const std::function<void()>& call) {
        try {
            call();
            return std::nullopt;
        } catch (const DeviceError& error) {
            return error;
        }
    }
};

TEST_F(Faults, StrikeTheNthPassOnce) {
    injector.arm({fault_at("allocate", 2)});
    EXPECT_EQ(allocations(4), (std::vector{true, false, true, true}));
    EXPECT_TRUE(injector.disarm());
    EXPECT_EQ(inner->ledger().live_count(MemoryKind::device), 0U);
}

TEST_F(Faults, StrikeForGood) {
    Fault fault = fault_at("allocate", 2);
    fault.for_good = true;
    injector.arm({fault});
    EXPECT_EQ(allocations(4), (std::vector{true, false, false, false}));
    injector.disarm();
    EXPECT_TRUE(allocates());
}

TEST_F(Faults, StrikeByTag) {
    Fault fault = fault_at("allocate", 2);
    fault.tag = "slot 0";
    injector.arm({fault});
    EXPECT_TRUE(allocates(256, "slot 0"));
    EXPECT_TRUE(allocates(256, "slot 1"));
    EXPECT_FALSE(allocates(256, "slot 0"));
}

TEST_F(Faults, StrikeBySize) {
    Fault fault = fault_at("allocate", 1);
    fault.bytes_min = 1000;
    injector.arm({fault});
    EXPECT_TRUE(allocates(999));
    EXPECT_FALSE(injector.disarm()) << "nothing of that size was asked for";
    injector.arm({fault});
    EXPECT_FALSE(allocates(1000));
    EXPECT_TRUE(injector.disarm());
}

TEST_F(Faults, OfAnotherRankDoNotStrike) {
    Fault fault = fault_at("allocate", 1);
    fault.rank = 1;
    injector.arm({fault});
    EXPECT_TRUE(allocates());
    EXPECT_TRUE(injector.disarm()) << "this rank had none";
}

TEST_F(Faults, StrikePinnedMemory) {
    injector.arm({fault_at("allocate_pinned", 1)});
    EXPECT_THROW(PinnedBuffer(device, 64, "moments"), OutOfDeviceMemory);
    EXPECT_NO_THROW(PinnedBuffer(device, 64, "moments"));
}

TEST_F(Faults, NameOperationAndRank) {
    injector.arm({fault_at("launch", 1)});
    const auto error = error_of([&] { device.launch({"scale", {}, {}, {}, {}}, stream); });
    ASSERT_TRUE(error);
    EXPECT_THAT(error->fields(), Contains(ErrorField{"operation", "launch scale"}));
    EXPECT_THAT(error->fields(), Contains(ErrorField{"rank", "rank 0"}));
}

TEST_F(Faults, CanBeForeignExceptions) {
    injector.arm({fault_at("create_event", 1, FaultAction::foreign)});
    EXPECT_THROW(Event{device}, InjectedException);
}

TEST_F(Faults, CanStopARankOrDelayItWithoutAnError) {
    for (const FaultAction action : {FaultAction::stop, FaultAction::delay}) {
        std::string passed;
        const auto results = run_ranks({.size = 2}, [&](Communicator& world) {
            FaultInjector mine(world.rank());
            Fault fault = fault_at("write", 2, action);
            fault.seam = "storage";
            fault.rank = 1;
            fault.delay = std::chrono::milliseconds(5);
            mine.arm({fault});
            for (int pass = 0; pass < 2; ++pass) {
                EXPECT_EQ(mine.pass({"storage", "write"}), nullptr);
            }
            passed += std::to_string(world.rank());
        });
        const bool stops = action == FaultAction::stop;
        EXPECT_EQ(passed, stops ? "0" : "01");
        EXPECT_EQ(results[1].end, stops ? RankResult::End::killed : RankResult::End::finished);
    }
}

TEST_F(Faults, ThatArriveLateAreReportedByTheCallThatWaits) {
    PinnedBuffer host(device, 8, "host");
    const DeviceBuffer buffer = filled(std::byte{1});
    injector.arm({fault_at("copy", 1, FaultAction::late)});
    const Event done(device);
    device.copy_async(host.data(), buffer.data(), 8, CopyDirection::device_to_host, stream);
    device.record(done.ref(), stream);
    const auto error = error_of([&] { device.synchronize(done.ref()); });
    ASSERT_TRUE(error);
    EXPECT_THAT(error->fields(), Contains(ErrorField{"operation", "synchronize"}));
    EXPECT_THAT(error->fields(), Contains(ErrorField{"origin", "copy"}));
    EXPECT_THAT(error->what(), HasSubstr("fault_plan_test.cpp"));
    EXPECT_EQ(host.data()[0], std::byte{0}) << "a copy that failed has copied nothing";
}

TEST_F(Faults, ThatArriveLateBreakEveryCallFromThenOn) {
    const DeviceBuffer buffer = filled(std::byte{1});
    Event event(device);
    injector.arm({fault_at("launch", 1, FaultAction::late)});
    device.launch({"scale", {}, {}, {}, {}}, stream);
    device.fill_async(buffer.data(), std::byte{2}, 8, stream);
    EXPECT_THROW(device.synchronize(stream.ref()), DeviceError);
    injector.disarm();
    const std::vector<std::function<void()>> calls{
        [&] { (void)device.allocate(8, stream, "x"); },
        [&] { (void)device.allocate_pinned(8, "x"); },
        [&] { (void)device.create_stream("x"); },
        [&] { (void)device.create_event(); },
        [&] { device.fill_async(buffer.data(), std::byte{3}, 8, stream); },
        [&] {
            device.launch({"scale", {}, {}, {}, {}}, stream);
        },
        [&] { device.record(event.ref(), stream); },
        [&] { device.wait(stream, event.ref()); },
        [&] { device.synchronize(event.ref()); },
        [&] { (void)device.query(event.ref()); }};
    for (std::size_t i = 0; i < calls.size(); ++i) {
        const auto error = error_of(calls[i]);
        ASSERT_TRUE(error) << "call " << i;
        EXPECT_THAT(error->fields(), Contains(ErrorField{"origin", "launch scale"}));
    }
    inner->synchronize(stream.ref());
    EXPECT_EQ(*inner->inspect(buffer.data()), std::byte{1}) << "work after the failure has run";
}

TEST_F(Faults, ThatArriveLateMayBeReportedByAnUnrelatedCall) {
    Fault fault = fault_at("fill", 1, FaultAction::late);
    fault.silent_calls = 2;
    const DeviceBuffer buffer = filled(std::byte{1});
    injector.arm({fault});
    device.fill_async(buffer.data(), std::byte{2}, 8, stream);
    EXPECT_TRUE(allocates());
    EXPECT_TRUE(allocates());
    EXPECT_THROW((void)device.create_event(), DeviceError);
}

TEST_F(Faults, FlipOneBitOfAnUpload) {
    PinnedBuffer host(device, 8, "host");
    const DeviceBuffer buffer(device, 8, stream, "buffer");
    Fault fault = fault_at("copy", 1, FaultAction::flip);
    fault.bit = 64 + 11;  // of 64
    injector.arm({fault});
    device.copy_async(buffer.data(), host.data(), 8, CopyDirection::host_to_device, stream);
    device.synchronize(stream.ref());
    for (int i = 0; i < 8; ++i) {
        EXPECT_EQ(inner->inspect(buffer.data())[i], i == 1 ? std::byte{8} : std::byte{0});
    }
    EXPECT_THAT(inner->findings(), IsEmpty());
}

TEST_F(Faults, FlipOneBitOfADownloadAndLeaveItsSource) {
    PinnedBuffer host(device, 8, "host");
    const DeviceBuffer buffer = filled(std::byte{0});
    Fault fault = fault_at("copy", 1, FaultAction::flip);
    fault.bit = 63;
    injector.arm({fault});
    device.copy_async(host.data(), buffer.data(), 8, CopyDirection::device_to_host, stream);
    device.synchronize(stream.ref());
    EXPECT_EQ(host.data()[7], std::byte{0x80});
    EXPECT_EQ(inner->inspect(buffer.data())[7], std::byte{0});
    EXPECT_THAT(inner->findings(), IsEmpty());
}

TEST_F(Faults, PostponeWhatAQueryTells) {
    const DeviceBuffer buffer = filled(std::byte{1});
    const Event done(device);
    device.record(done.ref(), stream);
    device.synchronize(stream.ref());
    injector.arm({fault_at("query", 1, FaultAction::postpone)});
    EXPECT_FALSE(device.query(done.ref()));
    EXPECT_TRUE(device.query(done.ref()));
}

/// When two uploads and one download of 1,000 B would have run, at 1 B per nanosecond.
std::uint64_t end_of_copies(const FaultPlan& plan) {
    const auto inner = make_simulated_device({.capacity_bytes = 1U << 20U});
    FaultInjector injector(0);
    const auto device = make_faulty_device(*inner, injector);
    const Stream stream(*device, "stream");
    PinnedBuffer host(*device, 1000, "host");
    host.write(0, 1).bytes()[0] = std::byte{5};
    PinnedBuffer back(*device, 1000, "back");
    const DeviceBuffer buffer(*device, 1000, stream, "buffer");
    injector.arm(plan);
    for (int i = 0; i < 2; ++i) {
        device->copy_async(buffer.data(), host.data(), 1000, CopyDirection::host_to_device, stream);
    }
    device->copy_async(back.data(), buffer.data(), 1000, CopyDirection::device_to_host, stream);
    device->synchronize(stream.ref());
    EXPECT_EQ(back.read(0, 1).bytes()[0], std::byte{5});
    EXPECT_THAT(inner->findings(), IsEmpty());
    DeviceProfile profile;
    profile.upload_bytes_per_second = 1e9;
    profile.download_bytes_per_second = 1e9;
    const TimedGraph graph = inner->timed_graph();
    std::uint64_t end = 0;
    const std::vector<std::vector<OperationTime>> times = timeline({&graph, 1}, profile);
    for (const OperationTime& time : times.at(0)) {
        end = std::max(end, time.end_picoseconds);
    }
    return end;
}

TEST(SlowLinks, TakeTheirTimeAndBringTheRightBytes) {
    Fault once = fault_at("copy", 2, FaultAction::slow);
    once.times = 3;
    Fault for_good = once;
    for_good.for_good = true;
    EXPECT_EQ(end_of_copies({}), 3'000'000U);
    EXPECT_EQ(end_of_copies({once}), 5'000'000U);
    EXPECT_EQ(end_of_copies({for_good}), 7'000'000U);
}

TEST_F(Faults, ThatCannotBeAreRefused) {
    EXPECT_THROW(injector.arm({fault_at("launch", 1, FaultAction::slow)}), ArgumentError);
    Fault no_slower = fault_at("copy", 1, FaultAction::slow);
    no_slower.times = 1;
    EXPECT_THROW(injector.arm({no_slower}), ArgumentError);
    EXPECT_THROW(injector.arm({fault_at("copy", 0)}), ArgumentError);
    EXPECT_THROW(injector.arm({fault_at("allocate", 1, FaultAction::flip)}), ArgumentError);
    EXPECT_THROW(injector.arm({fault_at("record", 1, FaultAction::late)}), ArgumentError);
    EXPECT_THROW(injector.arm({fault_at("wait", 1, FaultAction::postpone)}), ArgumentError);
}

TEST_F(Faults, AreTriedAtEveryPassOnceForGoodAndLate) {
    std::vector<FaultPlan> plans;
    const std::size_t faults = for_each_fault([&](const FaultPlan& plan) {
        plans.push_back(plan);
        return std::vector<FaultCount>{{"storage", "read", 1, 2}, {"device", "copy", 0, 1}};
    });
    EXPECT_EQ(faults, 7U);
    ASSERT_EQ(plans.size(), 8U);
    EXPECT_THAT(plans[0], IsEmpty());
    Fault second_read = fault_at("read", 2);
    second_read.seam = "storage";
    second_read.rank = 1;
    EXPECT_THAT(plans[3], ElementsAre(second_read));
    second_read.for_good = true;
    EXPECT_THAT(plans[4], ElementsAre(second_read));
    EXPECT_THAT(plans[7], ElementsAre(fault_at("copy", 1, FaultAction::late)));
}

TEST_F(Faults, CountEveryPoint) {
    injector.arm({});
    (void)allocations(3);
    const Event event(device);
    EXPECT_THAT(injector.counts(), ElementsAre(FaultCount{"device", "allocate", 0, 3},
                                               FaultCount{"device", "create_event", 0, 1}));
}

}  // namespace
}  // namespace swaplab::sim
