/// Page guards: what the host does to pinned memory without a scope while work on it is pending.

#include "device_contract.hpp"
#include "race_programs.hpp"

#include "swaplab/sim/simulated_device.hpp"

#include <cerrno>
#include <unistd.h>

namespace swaplab::sim {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::uint64_t page_bytes = 4096;

SimulatedDeviceOptions guarded(Schedule schedule = Schedule::latest, std::uint64_t seed = 1) {
    SimulatedDeviceOptions options;
    options.capacity_bytes = contract_capacity_bytes;
    options.schedule = schedule;
    options.seed = seed;
    options.page_guards = true;
    return options;
}

class PageGuards : public ::testing::Test {
  protected:
    PageGuards() { device->fill_async(slot.data(), std::byte{7}, slot.bytes(), stream); }

    void download(std::uint64_t offset, std::uint64_t bytes) {
        device->copy_async(moments.data() + offset, slot.data() + offset, bytes,
                           CopyDirection::device_to_host, stream, {"step.cpp", 10});
    }
    void upload(std::uint64_t offset, std::uint64_t bytes) {
        device->copy_async(slot.data() + offset, moments.data() + offset, bytes,
                           CopyDirection::host_to_device, stream, {"step.cpp", 20});
    }
    /// As code does that knows nothing of scopes.
    std::byte peek(std::uint64_t offset) {
        return const_cast<const volatile std::byte*>(moments.data())[offset];
    }
    void poke(std::uint64_t offset, std::byte value) {
        const_cast<volatile std::byte*>(moments.data())[offset] = value;
    }
    /// Those that the next call has found.
    std::vector<std::string> texts() {
        device->synchronize(stream.ref());
        std::vector<std::string> all;
        for (const Finding& finding : device->findings()) {
            all.push_back(finding.text);
        }
        return all;
    }

    std::unique_ptr<SimulatedDevice> device = make_simulated_device(guarded());
    Stream stream{*device, "swap"};
    DeviceBuffer slot{*device, 4 * page_bytes, stream, "slot", {"step.cpp", 1}};
    PinnedBuffer moments{*device, 4 * page_bytes, "moments", {"step.cpp", 2}};
};

TEST_F(PageGuards, AReadOfADownloadInFlightIsARaceWithRangeSitesAndEdge) {
    download(0, 2 * page_bytes);
    peek(100);
    ASSERT_EQ(texts(), std::vector<std::string>{
                           "race: rank 0, \"moments\" bytes 100 to 8,192: host read without a "
                           "scope is not ordered after copy d2h on swap (step.cpp:10); missing: "
                           "record on swap -> synchronize (memory allocated at step.cpp:2)"});
    const ErrorFields& fields = device->findings().front().fields;
    EXPECT_THAT(fields, Contains(ErrorField{"site", "step.cpp:10"}));
    EXPECT_THAT(fields, Contains(ErrorField{"offset_bytes", "100"}));
    EXPECT_THAT(fields, Contains(ErrorField{"bytes", "8092"}));
    EXPECT_EQ(peek(100), std::byte{7});
}

TEST_F(PageGuards, AWriteToAnUploadInFlightIsARaceAndIsDone) {
    upload(page_bytes, page_bytes);
    EXPECT_EQ(peek(page_bytes), std::byte{0});
    poke(page_bytes + 8, std::byte{9});
    EXPECT_EQ(peek(page_bytes + 8), std::byte{9});
    EXPECT_EQ(texts(), std::vector<std::string>{
                           "race: rank 0, \"moments\" bytes 4,104 to 8,192: host write without a "
                           "scope is not ordered after copy h2d on swap (step.cpp:20); missing: "
                           "record on swap -> synchronize (memory allocated at step.cpp:2)"});
}

TEST_F(PageGuards, WhatTheHostIsOrderedAfterIsOpen) {
    download(0, 4 * page_bytes);
    EXPECT_THAT(texts(), IsEmpty());
    EXPECT_EQ(peek(page_bytes), std::byte{7});
    upload(0, 4 * page_bytes);
    const Event done(*device);
    device->record(done, stream);
    while (!device->query(done)) {
    }
    poke(0, std::byte{1});
    EXPECT_THAT(texts(), IsEmpty());
}

/// Which no fault handler sees: the kernel itself looks at the page.
TEST_F(PageGuards, SystemCallsAreRefusedGuardedPagesAlone) {
    int ends[2] = {};
    ASSERT_EQ(::pipe(ends), 0);
    const auto send = [&] { return ::write(ends[1], moments.data(), 1) == 1 ? 0 : errno; };
    EXPECT_EQ(send(), 0);
    download(0, page_bytes);
    EXPECT_EQ(send(), EFAULT);
    EXPECT_THAT(texts(), IsEmpty());
    EXPECT_EQ(send(), 0);
    download(0, page_bytes);
    static_cast<void>(moments.read(0, 1));
    EXPECT_EQ(send(), 0);
    EXPECT_EQ(texts().size(), 1U);  // the scope's
    ::close(ends[0]);
    ::close(ends[1]);
}

TEST_F(PageGuards, HavingRunIsNotEnough) {
    download(0, page_bytes);
    const Stream other(*device, "other");
    const Event after(*device);
    device->record(after, stream);
    device->wait(other, after);
    download(page_bytes, page_bytes);
    device->synchronize(other.ref());
    EXPECT_EQ(peek(0), std::byte{7});
    peek(page_bytes);
    EXPECT_THAT(texts(), ::testing::ElementsAre(HasSubstr("bytes 4,096 to 8,192: host read")));
}

TEST_F(PageGuards, BytesBesideThoseInFlightAreNobodysRaceAndEachPageIsMetOnce) {
    download(100, 50);
    poke(99, std::byte{1});
    peek(150);
    EXPECT_THAT(texts(), IsEmpty());
    download(0, 3 * page_bytes);
    for (std::uint64_t offset = 0; offset < 4 * page_bytes; ++offset) {
        peek(offset);
    }
    EXPECT_EQ(texts().size(), 3U);
}

TEST_F(PageGuards, AScopeIsJudgedOnce) {
    download(0, page_bytes);
    const HostReadScope wrong = moments.read(0, page_bytes, {"step.cpp", 30});
    static_cast<void>(wrong.bytes()[5]);
    peek(6);
    EXPECT_THAT(texts(), ::testing::ElementsAre(HasSubstr("host read (step.cpp:30)")));
}

TEST_F(PageGuards, AnUploadDoesNotOpenWhatADownloadWrites) {
    download(0, 2 * page_bytes);
    upload(page_bytes, 2 * page_bytes);
    peek(page_bytes);
    poke(2 * page_bytes, std::byte{1});
    EXPECT_THAT(texts(), ::testing::ElementsAre(HasSubstr("is not ordered after copy d2h"),
                                                HasSubstr("is not ordered after copy h2d")));
}

TEST_F(PageGuards, HostFunctionsTouchPagesInTheOrderOfTheirStream) {
    download(0, page_bytes);
    std::byte* const bytes = moments.data();
    device->call_host({"declared", {}, {{bytes, page_bytes}}, [bytes] { bytes[0] = std::byte{1}; }},
                      stream);
    download(page_bytes, page_bytes);
    device->call_host({"silent", {}, {}, [bytes] { bytes[1] = bytes[page_bytes]; }}, stream);
    EXPECT_THAT(texts(), IsEmpty());
    EXPECT_EQ(peek(0), std::byte{1});
    EXPECT_EQ(peek(1), std::byte{7});
}

TEST_F(PageGuards, MemoryFreedUnderPendingWorkIsUsedAfterItsFree) {
    download(0, page_bytes);
    std::byte* const bytes = moments.data();
    moments = {};
    static_cast<void>(const_cast<const volatile std::byte*>(bytes)[1]);
    EXPECT_THAT(texts(), ::testing::ElementsAre(
                             HasSubstr("in_flight_reuse"),
                             HasSubstr("host read without a scope uses \"moments\", freed at")));
}

TEST_F(PageGuards, NothingIsFoundOnALostDevice) {
    download(0, page_bytes);
    device->launch(
        {"break", {}, {}, [](const DeviceAccess&) { throw std::runtime_error("!"); }, {}}, stream);
    download(page_bytes, page_bytes);
    EXPECT_THROW(device->synchronize(stream.ref()), DeviceLost);
    poke(page_bytes, std::byte{1});
    EXPECT_THROW(device->synchronize(stream.ref()), DeviceLost);
    EXPECT_THAT(device->findings(), IsEmpty());
}

TEST(PageGuard, IsOffUnlessAskedForAndNeedsTheChecksOfAccesses) {
    for (const bool guards : {false, true}) {
        SimulatedDeviceOptions options = guarded();
        options.page_guards = guards;
        options.check_accesses = !guards;
        const auto device = make_simulated_device(options);
        const Stream stream(*device, "swap");
        const DeviceBuffer slot(*device, page_bytes, stream, "slot");
        const PinnedBuffer moments(*device, page_bytes, "moments");
        device->fill_async(slot.data(), std::byte{7}, page_bytes, stream);
        device->copy_async(moments.data(), slot.data(), page_bytes, CopyDirection::device_to_host,
                           stream);
        static_cast<void>(const_cast<const volatile std::byte*>(moments.data())[0]);
        device->synchronize(stream.ref());
        EXPECT_THAT(device->findings(), IsEmpty());
    }
}

TEST(PageGuard, MemoryIsOpenAgainWhereverItEnds) {
    for (const PinnedPolicy policy : {PinnedPolicy::exact, PinnedPolicy::power_of_two}) {
        SimulatedDeviceOptions options = guarded();
        options.pinned = policy;
        const auto device = make_simulated_device(options);
        const Stream stream(*device, "swap");
        const DeviceBuffer slot(*device, page_bytes, stream, "slot");
        device->fill_async(slot.data(), std::byte{7}, page_bytes, stream);
        for (int round = 0; round < 3; ++round) {
            PinnedBuffer moments(*device, 100, "moments");
            device->copy_async(moments.data(), slot.data(), 100, CopyDirection::device_to_host,
                               stream);
            if (round < 2) {
                device->synchronize(stream.ref());
            }
        }
        EXPECT_EQ(device->findings().size(), 1U);  // the last was freed while work used it
    }
}

/// Guards neither find anything in correct programs nor change what they do.
TEST(PageGuard, CorrectProgramsWithScopesRunAsWithoutGuards) {
    for (std::uint64_t seed = 1; seed <= 60; ++seed) {
        const race_programs::Program program = race_programs::make_correct(seed);
        for (const Schedule schedule : {Schedule::random, Schedule::latest}) {
            std::vector<std::byte> read[2];
            std::uint64_t digest[2] = {};
            for (const bool guards : {false, true}) {
                SimulatedDeviceOptions options = guarded(schedule, seed);
                options.page_guards = guards;
                const auto device = make_simulated_device(options);
                read[guards ? 1 : 0] = race_programs::run(program, *device);
                device->finish();
                ASSERT_THAT(device->findings(), IsEmpty()) << "seed " << seed;
                digest[guards ? 1 : 0] = device->execution_digest();
            }
            ASSERT_EQ(read[0], read[1]) << "seed " << seed;
            ASSERT_EQ(digest[0], digest[1]) << "seed " << seed;
        }
    }
}

}  // namespace
}  // namespace swaplab::sim
