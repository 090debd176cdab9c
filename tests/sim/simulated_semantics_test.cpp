/// What only a simulated device can show of CUDA's rules: orders that are missing, choices that are
/// open, misuse that real devices let pass. The device_semantics suite has the rest.

#include "device_contract.hpp"

#include "swaplab/sim/explore.hpp"
#include "swaplab/sim/simulated_device.hpp"
#include "swaplab/sim/world.hpp"

#include <set>

namespace swaplab::sim {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::uint64_t size_bytes = 256;
constexpr auto up = CopyDirection::host_to_device;
constexpr auto down = CopyDirection::device_to_host;

std::vector<FindingKind> kinds_of(const SimulatedDevice& device) {
    std::vector<FindingKind> kinds;
    for (const Finding& finding : device.findings()) {
        kinds.push_back(finding.kind);
    }
    return kinds;
}

class Semantics : public ::testing::Test {
  protected:
    std::unique_ptr<SimulatedDevice> owner = make_simulated_device({});
    SimulatedDevice& device = *owner;
    Stream stream{device, "stream"};

    void expect_found(FindingKind kind, const std::string& text) {
        ASSERT_EQ(kinds_of(device), std::vector{kind});
        const Finding& finding = device.findings().at(0);
        EXPECT_THAT(finding.text, HasSubstr(text));
        EXPECT_THAT(finding.text, HasSubstr("simulated_semantics_test.cpp:"));
    }
};

/// Whether work that `first` issues is ordered before what `second` issues next.
bool is_ordered(SimulatedDevice& device, StreamRef first, StreamRef second) {
    DeviceBuffer memory(device, size_bytes, first, "memory");
    device.fill_async(memory.data(), std::byte{1}, size_bytes, first);
    device.fill_async(memory.data(), std::byte{2}, size_bytes, second);
    memory.set_stream(second);
    const bool ordered = device.findings().empty();
    device.synchronize(first);
    return ordered;
}

TEST(DefaultStream, OrdersBlockingStreamsBothWaysAndNoOthers) {
    struct Row {
        StreamKind kind;
        bool ordered;
    };
    for (const Row row : {Row{StreamKind::blocking, true}, Row{StreamKind::non_blocking, false}}) {
        for (const bool first : {true, false}) {
            const auto device = make_simulated_device({});
            const Stream other(*device, "other", row.kind);
            const StreamRef standard = device->default_stream();
            EXPECT_EQ(
                is_ordered(*device, first ? standard : other.ref(), first ? other.ref() : standard),
                row.ordered);
        }
    }
}

TEST_F(Semantics, BlockingStreamsAreUnorderedWithoutWorkOnTheDefaultStream) {
    static_cast<void>(device.default_stream());
    const Stream one(device, "one", StreamKind::blocking);
    const Stream two(device, "two", StreamKind::blocking);
    EXPECT_FALSE(is_ordered(device, one, two));
}

TEST_F(Semantics, OrdersOfTheDefaultStreamAreWaitsInTheTrace) {
    const Stream one(device, "one", StreamKind::blocking);
    device.launch({"first", {}, {}, {}, {}}, one);
    device.launch({"second", {}, {}, {}, {}}, device.default_stream());
    std::vector<std::string> operations;
    for (const TraceEvent& event : device.trace()) {
        operations.push_back(event.operation + " on " + event.stream);
    }
    EXPECT_EQ(operations, (std::vector<std::string>{"launch first on one", "wait on default",
                                                    "launch second on default"}));
}

/// Whether the upload had run when its call returned.
bool has_run_at_once(SimulatedDevice& device) {
    const Stream on(device, "on");
    const DeviceBuffer memory(device, size_bytes, on, "memory");
    const std::vector<std::byte> source(size_bytes, std::byte{7});
    device.copy_pageable(memory.data(), source.data(), size_bytes, up, on);
    const bool ran = device.execution_record().size() == 2;
    device.synchronize(on.ref());
    return ran;
}

TEST(Pageable, AnUploadMayOrMayNotHaveRunWhenItReturns) {
    for (const Schedule schedule : {Schedule::random, Schedule::pct}) {
        std::set<bool> seen;
        for (std::uint64_t seed = 1; seed <= 32; ++seed) {
            seen.insert(
                has_run_at_once(*make_simulated_device({.schedule = schedule, .seed = seed})));
        }
        EXPECT_EQ(seen.size(), 2U) << name_of(schedule);
    }
    EXPECT_FALSE(has_run_at_once(*make_simulated_device({.schedule = Schedule::latest})));
}

TEST(Pageable, ExplorationTriesBoth) {
    std::set<bool> seen;
    const Exploration all = explore(
        {}, [&seen](SimulatedDevice& device) { seen.insert(has_run_at_once(device)); }, 100);
    EXPECT_TRUE(all.complete);
    EXPECT_EQ(seen.size(), 2U);
}

// ashalliants/ninfer-3090#38: stale reads in 146 of 200 tries, never with small copies.
TEST_F(Semantics, APageableUploadOrdersNothingOnOtherStreams) {
    const Stream other(device, "other");
    const DeviceBuffer memory(device, size_bytes, stream, "memory");
    device.synchronize(stream.ref());
    const std::vector<std::byte> source(size_bytes, std::byte{7});
    device.copy_pageable(memory.data(), source.data(), size_bytes, up, stream);
    device.launch(add_kernel(memory.data(), size_bytes, 1), other);
    expect_found(FindingKind::race, "missing: record on stream -> wait on other");
    device.synchronize(other.ref());
    device.synchronize(stream.ref());
}

TEST_F(Semantics, PageableCopiesAreCheckedForRaces) {
    const Stream other(device, "other");
    const DeviceBuffer memory(device, size_bytes, stream, "memory");
    device.synchronize(stream.ref());
    device.fill_async(memory.data(), std::byte{1}, size_bytes, stream);
    std::vector<std::byte> bytes(size_bytes);
    device.copy_pageable(bytes.data(), memory.data(), size_bytes, down, other);
    expect_found(FindingKind::race, "copy d2h pageable on other");
    device.synchronize(stream.ref());
}

TEST_F(Semantics, HostFunctionsAreCheckedForRacesOnPinnedMemory) {
    const Stream other(device, "other");
    const PinnedBuffer pinned(device, size_bytes, "pinned");
    const DeviceBuffer memory(device, size_bytes, stream, "memory");
    device.fill_async(memory.data(), std::byte{1}, size_bytes, stream);
    device.copy_async(pinned.data(), memory.data(), size_bytes, down, stream);
    device.call_host({"check", {{pinned.data(), size_bytes}}, {}, [] {}}, other);
    expect_found(FindingKind::race, "call host check on other");
    device.synchronize(other.ref());
    device.synchronize(stream.ref());
}

TEST_F(Semantics, CallsFromAHostFunctionAreFindingsAndDoNothing) {
    void* const memory = device.allocate(64, stream, "memory");
    device.call_host({"frees", {}, {}, [&] { device.deallocate(memory, stream); }}, stream);
    device.synchronize(stream.ref());
    expect_found(FindingKind::reentrant_call, "is called by call host frees on stream");
    EXPECT_EQ(device.ledger().now(MemoryKind::device), 64U);
    device.deallocate(memory, stream);
    device.synchronize(stream.ref());
}

TEST_F(Semantics, AKernelThatCallsItsDeviceLosesIt) {
    device.launch({"calls",
                   {},
                   {},
                   [this](const DeviceAccess&) { static_cast<void>(device.create_event()); },
                   {}},
                  stream);
    EXPECT_THROW(device.synchronize(stream.ref()), DeviceLost);
    EXPECT_THAT(kinds_of(device), Contains(FindingKind::reentrant_call));
}

TEST_F(Semantics, AQueryReportsALateError) {
    const Event done(device);
    device.launch({"broken", {}, {}, [](const DeviceAccess&) { throw DeviceError("no"); }, {}},
                  stream);
    device.record(done, stream);
    EXPECT_THROW(while (!device.query(done)){}, DeviceLost);
}

// What torch_openreg misses: its copies hold one lock for all streams and devices.
TEST(Overlap, CopiesOfTwoStreamsRunInEitherOrder) {
    std::set<std::byte> last;
    const Exploration all = explore(
        {},
        [&last](SimulatedDevice& device) {
            const Stream one(device, "one");
            const Stream two(device, "two");
            const DeviceBuffer memory(device, 1, one, "memory");
            device.synchronize(one.ref());
            PinnedBuffer from(device, 2, "from");
            write_count(from, 1);
            device.copy_async(memory.data(), from.data(), 1, up, one);
            device.copy_async(memory.data(), from.data() + 1, 1, up, two);
            device.synchronize(one.ref());
            device.synchronize(two.ref());
            last.insert(*device.inspect(memory.data()));
        },
        1000);
    EXPECT_TRUE(all.complete);
    EXPECT_EQ(last, (std::set{std::byte{1}, std::byte{2}}));
}

TEST(Overlap, HostFunctionsOfTwoStreamsRunInEitherOrder) {
    std::set<std::string> orders;
    const Exploration all = explore(
        {},
        [&orders](SimulatedDevice& device) {
            const Stream one(device, "one");
            const Stream two(device, "two");
            const auto seen = std::make_shared<std::string>();
            device.call_host({"first", {}, {}, [seen] { *seen += "1"; }}, one);
            device.call_host({"second", {}, {}, [seen] { *seen += "2"; }}, two);
            device.synchronize(one.ref());
            device.synchronize(two.ref());
            orders.insert(*seen);
        },
        1000);
    EXPECT_TRUE(all.complete);
    EXPECT_EQ(orders, (std::set<std::string>{"12", "21"}));
}

// Nor does the host trap there while a copy or a kernel is in flight.
TEST(HostTouch, TrapsWhileAKernelRuns) {
    const auto device = make_simulated_device({});
    const Stream stream(*device, "stream");
    const DeviceBuffer memory(*device, 64, stream, "memory");
    device->fill_async(memory.data(), std::byte{1}, 64, stream);
    device->launch({"touches",
                    {{memory.data(), 64}},
                    {},
                    [at = memory.data()](const DeviceAccess&) {
                        static_cast<void>(*static_cast<volatile std::byte*>(at));
                    },
                    {}},
                   stream);
    const auto results =
        run_ranks({.size = 1}, [&](Communicator&) { device->synchronize(stream.ref()); });
    EXPECT_EQ(results[0].end, RankResult::End::trapped);
    EXPECT_EQ(kinds_of(*device), std::vector{FindingKind::host_touch});
}

// rapidsai/rmm#2404: counters that go below zero.
TEST_F(Semantics, WrongFreesLeaveEveryCounterAsItWas) {
    const DeviceBuffer kept(device, 100, stream, "kept");
    const PinnedBuffer pinned(device, 100, "pinned");
    void* const once = device.allocate(64, stream, "once");
    device.deallocate(once, stream);
    int foreign = 0;
    for (void* const wrong :
         {once, static_cast<void*>(&foreign), static_cast<void*>(nullptr),
          static_cast<void*>(kept.data() + 1), static_cast<void*>(pinned.data())}) {
        device.deallocate(wrong, stream);
    }
    for (void* const wrong : {static_cast<void*>(&foreign), static_cast<void*>(kept.data()),
                              static_cast<void*>(pinned.data() + 8)}) {
        device.deallocate_pinned(wrong);
    }
    EXPECT_EQ(device.findings().size(), 5U) << "equal ones are told once";
    EXPECT_EQ(device.ledger().now(MemoryKind::device), 100U);
    EXPECT_EQ(device.ledger().now(MemoryKind::device, Size::rounded), 256U);
    EXPECT_EQ(device.ledger().now(MemoryKind::pinned), 100U);
    EXPECT_EQ(device.ledger().live_count(MemoryKind::device), 1U);
    device.synchronize(stream.ref());
}

// rapidsai/rmm#2252, seen from inside: a new stream is not ordered after what the last owner of its
// handle did, so it does not get that memory.
TEST_F(Semantics, AReusedHandleDoesNotReuseMemoryThatIsStillInUse) {
    std::optional<Stream> brief(std::in_place, device, "brief");
    const std::uint64_t handle = brief->ref().handle();
    void* const old = device.allocate(size_bytes, *brief, "old");
    device.fill_async(old, std::byte{1}, size_bytes, *brief);
    device.deallocate(old, *brief);
    brief.reset();
    const Stream next(device, "next");
    ASSERT_EQ(next.ref().handle(), handle);
    const DeviceBuffer fresh(device, size_bytes, next, "fresh");
    EXPECT_NE(fresh.data(), old);
    device.fill_async(fresh.data(), std::byte{2}, size_bytes, next);
    device.synchronize(next.ref());
    EXPECT_THAT(kinds_of(device), IsEmpty());
}

// Bad input, line by line: a finding that names the call site, an ArgumentError, nothing issued.

class BadInput : public Semantics {
  protected:
    DeviceBuffer memory{device, 64, stream, "memory"};
    PinnedBuffer pinned{device, 64, "pinned"};
    std::byte plain[64] = {};

    void copy(void* to, const void* from, std::uint64_t bytes, CopyDirection way) {
        const std::size_t issued = device.trace().size();
        EXPECT_THROW(device.copy_async(to, from, bytes, way, stream), ArgumentError);
        EXPECT_EQ(device.trace().size(), issued);
    }
    void expect_last(const std::string& text) {
        ASSERT_FALSE(device.findings().empty());
        EXPECT_EQ(device.findings().back().text, text);
    }
};

TEST_F(BadInput, ACopyInTheWrongDirectionIsFound) {
    copy(pinned.data(), memory.data(), 64, up);
    EXPECT_THAT(kinds_of(device), Each(FindingKind::host_pointer));
    copy(memory.data(), pinned.data(), 64, down);
    EXPECT_EQ(device.findings().size(), 2U);
    EXPECT_THAT(device.findings().back().text, HasSubstr("is the direction right?"));
    EXPECT_THAT(device.findings().back().text, HasSubstr("simulated_semantics_test.cpp:"));
}

TEST_F(BadInput, AnOverrunIsFound) {
    copy(memory.data() + 1, pinned.data(), 64, up);
    expect_found(FindingKind::bad_argument, "64 B from offset 1 of \"memory\"");
    EXPECT_THROW(device.fill_async(memory.data(), {}, 65, stream), ArgumentError);
    EXPECT_THROW(device.launch(add_kernel(memory.data(), 65, 1), stream), ArgumentError);
    EXPECT_EQ(device.findings().size(), 3U);
    EXPECT_THAT(kinds_of(device), Each(FindingKind::bad_argument));
}

TEST_F(BadInput, UnpinnedMemoryInACopyThatClaimsPinnedIsFound) {
    copy(memory.data(), plain, 64, up);
    expect_found(FindingKind::bad_argument, "copy h2d (");
    EXPECT_THAT(device.findings().at(0).text, HasSubstr("use copy_pageable"));
}

TEST_F(BadInput, FreedPinnedMemoryIsFoundAndNamed) {
    std::byte* freed = pinned.data();
    pinned = {};
    copy(memory.data(), freed, 64, up);
    expect_found(FindingKind::use_after_free, "uses \"pinned\", freed at");
}

TEST_F(BadInput, AHostPointerHandedToAKernelIsFound) {
    EXPECT_THROW(device.launch(add_kernel(plain, 64, 1), stream), ArgumentError);
    expect_found(FindingKind::host_pointer, "is handed host memory where device memory belongs");
}

TEST_F(BadInput, AnAddressBetweenAllocationsIsFound) {
    EXPECT_THROW(device.fill_async(memory.data() + 4096, {}, 1, stream), ArgumentError);
    expect_found(FindingKind::bad_argument, "not live device memory");
}

TEST_F(BadInput, UseOfADestroyedStreamOrEventIsFound) {
    std::optional<Stream> brief(std::in_place, device, "brief");
    std::optional<Event> event(std::in_place, device);
    const StreamRef stream_left = *brief;
    const EventRef event_left = *event;
    brief.reset();
    event.reset();
    EXPECT_THROW(device.fill_async(memory.data(), {}, 64, stream_left), ArgumentError);
    expect_found(FindingKind::bad_argument, "the stream is not a live stream of this device");
    EXPECT_THROW(device.wait(stream, event_left), ArgumentError);
    EXPECT_THAT(device.findings().back().text, HasSubstr("the event is not a live event"));
    const CallSite site{"trainer.cpp", 41};
    device.destroy_stream(stream_left, site);
    expect_last("use_after_free: rank 0, destroy_stream of a dead stream (trainer.cpp:41)");
    device.destroy_event(event_left, site);
    expect_last("use_after_free: rank 0, destroy_event of a dead event (trainer.cpp:41)");
    device.destroy_stream(device.default_stream(), site);
    expect_last("use_after_free: rank 0, destroy_stream of a default stream (trainer.cpp:41)");
    EXPECT_EQ(device.findings().size(), 5U);
}

TEST_F(BadInput, WorkAndEventsLeftBehindNameWhereTheirStreamAndEventWereDestroyed) {
    {
        const Stream brief(device, "brief", StreamKind::non_blocking, {"trainer.cpp", 1});
        const Event event(device, {"trainer.cpp", 2});
        device.fill_async(memory.data(), {}, 64, brief, {"trainer.cpp", 3});
        device.record(event, brief, {"trainer.cpp", 4});
    }
    expect_last(
        "unwaited_event: rank 0, an event recorded on brief (trainer.cpp:4, destroyed at "
        "trainer.cpp:2) was never waited for, synchronized or queried");
    device.finish();
    const auto& findings = device.findings();
    EXPECT_TRUE(std::any_of(findings.begin(), findings.end(), [](const Finding& finding) {
        return finding.text ==
               "pending_work: rank 0, nobody waited for fill on brief (trainer.cpp:3), the last "
               "work of its stream, destroyed at trainer.cpp:1";
    }));
}

}  // namespace
}  // namespace swaplab::sim
