#include "swaplab/sim/simulated_device.hpp"

#include "device_contract.hpp"

#include "swaplab/sim/world.hpp"

namespace swaplab::sim {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<FindingKind> kinds_of(const SimulatedDevice& device) {
    std::vector<FindingKind> kinds;
    for (const Finding& finding : device.findings()) {
        kinds.push_back(finding.kind);
    }
    return kinds;
}

std::uint32_t word_at(const std::byte* bytes) {
    std::uint32_t word = 0;
    std::copy_n(bytes, sizeof(word), reinterpret_cast<std::byte*>(&word));
    return word;
}

class Simulated : public ::testing::Test {
  protected:
    std::unique_ptr<SimulatedDevice> owner = make_simulated_device({});
    SimulatedDevice& device = *owner;
    Stream stream{device, "stream"};

    void expect_only(FindingKind kind, const std::string& text) {
        ASSERT_EQ(kinds_of(device), std::vector{kind});
        EXPECT_THAT(device.findings().at(0).text, HasSubstr(text));
    }
};

OutOfDeviceMemory::Report report_of(Device& device, std::uint64_t bytes, StreamRef stream) {
    try {
        const DeviceBuffer refused(device, bytes, stream, "refused");
    } catch (const OutOfDeviceMemory& error) {
        EXPECT_THAT(error.fields(),
                    Contains(ErrorField{"largest_hole_bytes",
                                        std::to_string(error.report().largest_hole_bytes)}));
        return error.report();
    }
    ADD_FAILURE() << bytes << " B fit";
    return {};
}

TEST_F(Simulated, AnOutOfMemoryReportSumsByTag) {
    const auto small = make_simulated_device({.capacity_bytes = 4096});
    const Stream on(*small, "on");
    const DeviceBuffer a(*small, 256, on, "slot");
    const DeviceBuffer b(*small, 300, on, "slot");
    const DeviceBuffer c(*small, 1000, on, "weight");
    const OutOfDeviceMemory::Report report = report_of(*small, 4000, on);
    EXPECT_EQ(report.free_bytes(), 4096U - 256 - 512 - 1024);
    EXPECT_EQ(report.largest_hole_bytes, report.free_bytes());
    ASSERT_EQ(report.by_tag.size(), 2U);
    EXPECT_EQ(report.by_tag[0].tag, "weight");
    EXPECT_EQ(report.by_tag[0].count, 1U);
    EXPECT_EQ(report.by_tag[1].requested_bytes, 556U);
    EXPECT_EQ(report.by_tag[1].rounded_bytes, 768U);
    EXPECT_EQ(report.by_tag[1].count, 2U);
    EXPECT_THAT(std::string(OutOfDeviceMemory(report).what()),
                AllOf(HasSubstr("slot  x 2"), HasSubstr("simulated_device_test.cpp")));
}

TEST_F(Simulated, AnOutOfMemoryReportTellsWhatIsGivenBackButInUse) {
    const auto small = make_simulated_device({.capacity_bytes = 4096});
    const Stream on(*small, "on");
    { const DeviceBuffer gone(*small, 1024, on, "gone"); }
    OutOfDeviceMemory::Report report = report_of(*small, 8192, on);
    EXPECT_EQ(report.pending_bytes, 1024U);
    EXPECT_EQ(report.free_bytes(), 4096U) << "free in the order of calls";
    EXPECT_FALSE(report.waiting_suffices);
    small->synchronize(on.ref());
    EXPECT_EQ(report_of(*small, 8192, on).pending_bytes, 0U);
}

TEST_F(Simulated, AnOutOfMemoryReportOfTenThousandBuffersNamesTenAndStaysShort) {
    std::vector<DeviceBuffer> buffers;
    for (std::uint64_t i = 0; i < 10'000; ++i) {
        buffers.emplace_back(device, 1 + i % 5'000, stream, "tag " + std::to_string(i % 5'000));
    }
    const OutOfDeviceMemory::Report report = report_of(device, std::uint64_t{1} << 30U, stream);
    ASSERT_EQ(report.holders.size(), 10U);
    EXPECT_EQ(report.holders[0].tag, "tag 4999");
    EXPECT_EQ(report.holders[9].tag, "tag 4995");
    EXPECT_EQ(report.by_tag.size(), 5'000U);
    const std::string text = OutOfDeviceMemory(report).what();
    EXPECT_THAT(text, HasSubstr("by 4990 tags more"));
    EXPECT_LT(text.size(), 2'000U);
}

TEST_F(Simulated, SchedulesAndFindingsAreFoundByName) {
    for (const Schedule schedule :
         {Schedule::fifo, Schedule::random, Schedule::latest, Schedule::pct}) {
        EXPECT_EQ(schedule_from_name(name_of(schedule)), schedule);
    }
    EXPECT_EQ(schedule_from_name("soon"), std::nullopt);
    for (int i = 0; i <= static_cast<int>(FindingKind::bad_argument); ++i) {
        const auto kind = static_cast<FindingKind>(i);
        EXPECT_EQ(finding_kind_from_name(name_of(kind)), kind);
    }
    EXPECT_EQ(finding_kind_from_name("bug"), std::nullopt);
}

TEST_F(Simulated, NothingRunsBeforeTheHostWaits) {
    const DeviceBuffer memory(device, 4, stream, "memory");
    device.fill_async(memory.data(), std::byte{1}, 4, stream);
    EXPECT_NE(*device.inspect(memory.data()), std::byte{1});
    device.synchronize(stream.ref());
    EXPECT_EQ(*device.inspect(memory.data()), std::byte{1});
}

TEST_F(Simulated, LatestRunsOnlyWhatIsWaitedFor) {
    const auto late = make_simulated_device({.schedule = Schedule::latest});
    const Stream needed(*late, "needed");
    const Stream unneeded(*late, "unneeded");
    const DeviceBuffer memory(*late, 256, needed, "memory");
    const DeviceBuffer idle(*late, 256, unneeded, "idle");
    late->fill_async(idle.data(), std::byte{1}, 256, unneeded);
    late->fill_async(memory.data(), std::byte{2}, 256, needed);
    late->synchronize(needed.ref());
    EXPECT_EQ(*late->inspect(memory.data()), std::byte{2});
    EXPECT_NE(*late->inspect(idle.data()), std::byte{1});
}

TEST_F(Simulated, FreshAndFreedMemoryIsPoisonedToTheLastByte) {
    const std::byte* inside = nullptr;
    {
        const DeviceBuffer memory(device, 1000, stream, "memory");
        inside = device.inspect(memory.data());
        device.synchronize(stream.ref());
        for (std::size_t offset = 0; offset < 1000; offset += 4) {
            ASSERT_EQ(word_at(inside + offset), 0x7fa5a5a5U);
        }
        device.fill_async(memory.data(), std::byte{1}, 1000, stream);
    }
    device.synchronize(stream.ref());
    for (std::size_t offset = 0; offset < 1000; offset += 4) {
        ASSERT_EQ(word_at(inside + offset), 0x7f9e9e9eU);
    }
}

TEST_F(Simulated, ADownloadPoisonsItsDestinationUntilItHasRun) {
    for (const std::uint64_t bytes : {1U, 3U, 4U, 4001U}) {
        const DeviceBuffer memory(device, bytes, stream, "memory");
        const PinnedBuffer pinned(device, bytes + 1, "pinned");
        device.fill_async(memory.data(), std::byte{1}, bytes, stream);
        device.synchronize(stream.ref());
        device.copy_async(pinned.data() + 1, memory.data(), bytes, CopyDirection::device_to_host,
                          stream);
        const std::byte pattern[] = {std::byte{0x96}, std::byte{0x96}, std::byte{0x96},
                                     std::byte{0x7f}};
        for (std::uint64_t i = 0; i < bytes; ++i) {
            ASSERT_EQ(pinned.data()[1 + i], pattern[i % 4]);
        }
        EXPECT_EQ(*pinned.data(), std::byte{0});
        device.synchronize(stream.ref());
        EXPECT_THAT(std::vector(pinned.data() + 1, pinned.data() + 1 + bytes),
                    ::testing::Each(std::byte{1}));
    }
}

TEST_F(Simulated, ADownloadPoisonsNothingThatEarlierWorkReads) {
    const DeviceBuffer memory(device, 4, stream, "memory");
    const Event uploaded(device);
    PinnedBuffer pinned(device, 4, "pinned");
    write_count(pinned, 1);
    const std::vector<std::byte> before(pinned.data(), pinned.data() + 4);
    device.copy_async(memory.data(), pinned.data(), 4, CopyDirection::host_to_device, stream);
    device.record(uploaded, stream);
    device.copy_async(pinned.data(), memory.data(), 4, CopyDirection::device_to_host, stream);
    EXPECT_EQ(std::vector(pinned.data(), pinned.data() + 4), before);
    device.synchronize(uploaded.ref());
    EXPECT_EQ(*pinned.data(), std::byte{0x96});
    device.synchronize(stream.ref());
    EXPECT_EQ(std::vector(pinned.data(), pinned.data() + 4), before);
}

TEST_F(Simulated, PoisonAndChecksCanBeLeftOut) {
    SimulatedDeviceOptions options;
    options.poison = false;
    options.check_accesses = false;
    const auto quiet = make_simulated_device(options);
    const Stream one(*quiet, "one");
    const Stream two(*quiet, "two");
    const DeviceBuffer memory(*quiet, 64, one, "memory");
    const PinnedBuffer pinned(*quiet, 64, "pinned");
    quiet->copy_async(pinned.data(), memory.data(), 64, CopyDirection::device_to_host, one);
    quiet->fill_async(memory.data(), std::byte{1}, 64, two);
    EXPECT_EQ(*pinned.data(), std::byte{0});
    EXPECT_THAT(kinds_of(*quiet), IsEmpty());
    quiet->synchronize(one.ref());
    quiet->synchronize(two.ref());
}

TEST_F(Simulated, UnwrittenBytesAreNamedToTheByte) {
    const DeviceBuffer memory(device, 64, stream, "memory");
    const PinnedBuffer pinned(device, 64, "pinned");
    const auto read = [&](std::uint64_t begin, std::uint64_t end) {
        device.copy_async(pinned.data(), memory.data() + begin, end - begin,
                          CopyDirection::device_to_host, stream);
    };
    device.fill_async(memory.data() + 8, std::byte{1}, 8, stream);
    device.fill_async(memory.data() + 24, std::byte{1}, 8, stream);
    read(8, 16);
    read(24, 32);
    EXPECT_THAT(kinds_of(device), IsEmpty());
    read(10, 40);
    EXPECT_THAT(device.findings().back().text, HasSubstr("reads bytes 16 to 24 of \"memory\""));
    read(20, 22);
    EXPECT_THAT(device.findings().back().text, HasSubstr("reads bytes 20 to 22 of"));
    read(17, 32);  // in three parts by now, but one range
    EXPECT_THAT(device.findings().back().text, HasSubstr("reads bytes 17 to 24 of"));
    read(31, 33);
    EXPECT_THAT(device.findings().back().text, HasSubstr("reads bytes 32 to 33 of"));
    EXPECT_EQ(device.findings().size(), 4U);
}

/// A kernel that declares bytes 16 to 32 of "memory" and touches `touched`.
class Undeclared : public Simulated {
  protected:
    Undeclared() { device.fill_async(memory.data(), std::byte{1}, memory.bytes(), stream); }
    void launch(std::function<void(std::byte* base, const DeviceAccess&)> body) {
        std::byte* const base = memory.data();
        device.launch({"sloppy",
                       {{base + 16, 8}},
                       {{base + 24, 8}, {base + 48, 0}},
                       [=](const DeviceAccess& access) { body(base, access); },
                       {}},
                      stream);
        device.synchronize(stream.ref());
    }
    DeviceBuffer memory{device, 64, stream, "memory"};
};

TEST_F(Undeclared, AddressesAskedForAreFindings) {
    launch([](std::byte* base, const DeviceAccess& access) {
        static_cast<void>(access.at(base + 16));
        static_cast<void>(access.at(base + 31));
        static_cast<void>(access.at(base + 48));
    });
    EXPECT_THAT(kinds_of(device), IsEmpty());
    launch([](std::byte* base, const DeviceAccess& access) {
        static_cast<void>(access.at(base + 32));
    });
    expect_only(FindingKind::undeclared_access,
                "launch sloppy on stream (simulated_device_test.cpp:");
    EXPECT_THAT(device.findings().at(0).text, HasSubstr("touches byte 32 of \"memory\""));
}

TEST_F(Undeclared, BytesChangedBesideTheRangesAreFindings) {
    for (const std::ptrdiff_t at : {0, 15, 32, 47, 63}) {
        const std::size_t before = device.findings().size();
        launch([at](std::byte* base, const DeviceAccess& access) {
            access.at(base + 16)[at - 16] = static_cast<std::byte>(at + 2);
        });
        ASSERT_EQ(device.findings().size(), before + 1);
        EXPECT_THAT(device.findings().back().text,
                    HasSubstr("touches byte " + std::to_string(at) + " of \"memory\""));
    }
    launch([](std::byte* base, const DeviceAccess& access) {
        access.at(base + 16)[80] = std::byte{9};
    });
    EXPECT_THAT(device.findings().back().text, HasSubstr("touches memory that is not allocated"));
}

TEST_F(Simulated, MemoryIsOccupiedFromItsAllocationUntilItsFreeHasRun) {
    const auto occupied = [this] {
        return device.ledger().now(MemoryKind::device, Size::rounded, Lifetime::occupied);
    };
    {
        const DeviceBuffer memory(device, 1000, stream, "memory");
        EXPECT_EQ(occupied(), 0U);
        device.synchronize(stream.ref());
        EXPECT_EQ(occupied(), 1024U);
    }
    EXPECT_EQ(device.ledger().now(MemoryKind::device), 0U);
    EXPECT_EQ(occupied(), 1024U);
    device.synchronize(stream.ref());
    EXPECT_EQ(occupied(), 0U);
}

TEST_F(Simulated, ReadingBytesThatNothingWroteIsAFinding) {
    const DeviceBuffer memory(device, 64, stream, "memory");
    const PinnedBuffer pinned(device, 64, "pinned");
    device.fill_async(memory.data(), std::byte{1}, 48, stream);
    device.copy_async(pinned.data(), memory.data(), 48, CopyDirection::device_to_host, stream);
    EXPECT_THAT(kinds_of(device), IsEmpty());
    device.launch(add_kernel(memory.data() + 40, 24, 1), stream);
    expect_only(FindingKind::uninitialised, "launch add on stream");
    EXPECT_THAT(device.findings().at(0).fields, Contains(ErrorField{"offset_bytes", "48"}));
    EXPECT_THAT(device.findings().at(0).fields, Contains(ErrorField{"bytes", "16"}));
}

TEST_F(Simulated, ReusedMemoryCountsAsUnwrittenAgain) {
    for (int round = 0; round < 2; ++round) {
        const DeviceBuffer memory(device, 64, stream, "memory");
        device.fill_async(memory.data(), std::byte{1}, 64, stream);
    }
    const DeviceBuffer memory(device, 64, stream, "memory");
    const PinnedBuffer pinned(device, 64, "pinned");
    device.copy_async(pinned.data(), memory.data(), 64, CopyDirection::device_to_host, stream);
    expect_only(FindingKind::uninitialised, "bytes 0 to 64 of \"memory\"");
}

TEST_F(Simulated, UseOfFreedMemoryNamesWhoseItWas) {
    std::byte* freed = nullptr;
    {
        const DeviceBuffer memory(device, 64, stream, "brief");
        freed = memory.data();
    }
    EXPECT_THROW(device.fill_async(freed + 8, {}, 8, stream), ArgumentError);
    expect_only(FindingKind::use_after_free, "uses \"brief\", freed at buffer.cpp:");
}

TEST_F(Simulated, HostMemoryWhereDeviceMemoryBelongsIsAFinding) {
    const PinnedBuffer pinned(device, 64, "pinned");
    EXPECT_THROW(device.launch(add_kernel(pinned.data(), 64, 1), stream), ArgumentError);
    expect_only(FindingKind::host_pointer, "launch add (");
    EXPECT_THAT(device.findings().at(0).text, HasSubstr("pinned \"pinned\""));
}

TEST_F(Simulated, WrongFreesAreFindingsAndFreeNothing) {
    const DeviceBuffer memory(device, 64, stream, "memory");
    device.deallocate(memory.data() + 16, stream);
    expect_only(FindingKind::use_after_free, "16 B inside \"memory\"");
    int here = 0;
    device.deallocate(&here, stream);
    void* twice = device.allocate(64, stream, "twice");
    device.deallocate(twice, stream);
    device.deallocate(twice, stream);
    void* pinned = device.allocate_pinned(64, "pinned");
    device.deallocate_pinned(pinned);
    device.deallocate_pinned(pinned);
    EXPECT_EQ(kinds_of(device),
              (std::vector{FindingKind::use_after_free, FindingKind::host_pointer,
                           FindingKind::use_after_free, FindingKind::use_after_free}));
    EXPECT_EQ(device.ledger().now(MemoryKind::device), 64U);
}

TEST_F(Simulated, AFreeOnADestroyedStreamIsAFindingAndStillFrees) {
    std::optional<Stream> brief(std::in_place, device, "brief");
    std::optional<DeviceBuffer> memory(std::in_place, device, 64, *brief, "memory");
    device.synchronize(brief->ref());
    brief.reset();
    memory.reset();
    expect_only(FindingKind::use_after_free, "free of \"memory\" on a stream that is gone");
    EXPECT_EQ(device.ledger().now(MemoryKind::device), 0U);
}

TEST_F(Simulated, FinishNamesLeaksOfEveryKind) {
    const DeviceBuffer memory(device, 1, stream, "on device");
    const PinnedBuffer pinned(device, 1, "pinned");
    const HostBuffer host(device, 1, "on host");
    device.finish();
    ASSERT_EQ(kinds_of(device),
              (std::vector{FindingKind::leak, FindingKind::leak, FindingKind::leak}));
    EXPECT_THAT(device.findings()[0].fields, Contains(ErrorField{"tag", "on device"}));
    EXPECT_THAT(device.findings()[1].fields, Contains(ErrorField{"tag", "pinned"}));
    EXPECT_THAT(device.findings()[2].fields, Contains(ErrorField{"tag", "on host"}));
    device.finish();
    EXPECT_EQ(device.findings().size(), 3U);
}

TEST_F(Simulated, FinishNamesWorkThatNobodyWaitedFor) {
    {
        const DeviceBuffer memory(device, 64, stream, "memory");
        device.fill_async(memory.data(), std::byte{1}, 64, stream);
    }
    device.finish();
    expect_only(FindingKind::pending_work, "nobody waited for fill on stream");
    EXPECT_EQ(device.ledger().now(MemoryKind::device, Size::rounded, Lifetime::occupied), 0U);
}

TEST_F(Simulated, EventsThatNobodyWaitedForAreFound) {
    const Event never_recorded(device);
    const Event waited(device);
    device.record(waited, stream);
    device.wait(stream, waited);
    const Event queried(device);
    device.record(queried, stream);
    static_cast<void>(device.query(queried));
    const Event kept(device);
    device.record(kept, stream);
    device.finish();
    expect_only(FindingKind::unwaited_event, "an event recorded on stream");
}

TEST_F(Simulated, AnEventDestroyedUnwaitedIsFoundAtOnce) {
    {
        const Event event(device);
        device.record(event, stream);
    }
    expect_only(FindingKind::unwaited_event, "an event recorded on stream");
}

TEST_F(Simulated, TheTraceTellsWhatWasIssuedWithoutAddresses) {
    DeviceBuffer memory(device, 64, stream, "memory");
    PinnedBuffer pinned(device, 32, "pinned");
    static_cast<void>(pinned.write(8, 16));
    device.copy_async(memory.data() + 4, pinned.data() + 8, 16, CopyDirection::host_to_device,
                      stream);
    device.launch(add_kernel(memory.data() + 4, 16, 1), stream);
    device.synchronize(stream.ref());
    memory = {};
    const auto up = CopyDirection::host_to_device;
    const std::vector<TraceEvent> expected{
        {"allocate", "stream", "memory", 0, 64, up},   {"allocate pinned", "", "pinned", 0, 32, up},
        {"host write", "", "pinned", 8, 16, up},       {"copy h2d", "stream", "pinned", 8, 16, up},
        {"launch add", "stream", "memory", 4, 16, up}, {"record", "stream", "", 0, 0, up},
        {"synchronize", "stream", "", 0, 0, up},       {"free", "stream", "memory", 0, 64, up},
    };
    EXPECT_EQ(device.trace(), expected);
}

TEST_F(Simulated, AFailingKernelLosesTheDeviceAndEndsWithoutFalseFindings) {
    {
        const DeviceBuffer memory(device, 64, stream, "memory");
        const PinnedBuffer pinned(device, 64, "pinned");
        const Stream other(device, "other");
        device.launch(
            {"broken", {}, {}, [](const DeviceAccess&) { throw ArgumentError("no"); }, {}}, stream);
        device.fill_async(memory.data(), std::byte{1}, 64, stream);
        device.copy_async(pinned.data(), memory.data(), 64, CopyDirection::device_to_host, stream);
        try {
            device.synchronize(stream.ref());
            FAIL() << "no error";
        } catch (const DeviceLost& error) {
            EXPECT_THAT(error.what(), HasSubstr("launch broken (simulated_device_test.cpp:"));
            EXPECT_THAT(error.fields(), Contains(ErrorField{"reason", "no"}));
        }
    }
    device.finish();
    EXPECT_THAT(kinds_of(device), IsEmpty());
    EXPECT_EQ(device.ledger().now(MemoryKind::device, Size::rounded, Lifetime::occupied), 0U);
}

TEST_F(Simulated, LargeDevicesCostNothingUntilTheyAreTouched) {
    constexpr std::uint64_t large = std::uint64_t{8} << 30U;
    std::vector<std::unique_ptr<SimulatedDevice>> devices;
    for (int rank = 0; rank < 8; ++rank) {
        devices.push_back(make_simulated_device({.rank = rank, .capacity_bytes = large}));
    }
    EXPECT_EQ(devices.back()->memory_info().free_bytes, large);
    EXPECT_THROW(static_cast<void>(make_simulated_device({.capacity_bytes = ~std::uint64_t{0}})),
                 ArgumentError);
}

enum class Touching { read, write };

/// One rank touches device memory from the host while the others wait for it.
std::vector<RankResult> touch_on_rank_one(std::vector<std::unique_ptr<SimulatedDevice>>& devices,
                                          Touching touching) {
    for (int rank = 0; rank < 3; ++rank) {
        devices.push_back(make_simulated_device({.rank = rank}));
    }
    return run_ranks({.size = 3}, [&](Communicator& world) {
        SimulatedDevice& device = *devices[static_cast<std::size_t>(world.rank())];
        const Stream stream(device, "stream");
        const DeviceBuffer memory(device, 8192, stream, "param b");
        volatile std::byte* const address = memory.data() + 128;
        if (world.rank() == 1) {
            try {
                throw StorageError("being handled while the rank ends");
            } catch (const StorageError&) {
                if (touching == Touching::write) {
                    *address = std::byte{1};
                }
                static_cast<void>(*address);
            }
        }
        world.barrier();
    });
}

TEST(HostTouch, EndsTheRankAndNamesTheBytes) {
    for (const auto& [touching, verb] :
         {std::pair{Touching::read, "read"}, std::pair{Touching::write, "write"}}) {
        std::vector<std::unique_ptr<SimulatedDevice>> devices;
        const auto results = touch_on_rank_one(devices, touching);
        EXPECT_EQ(results[1].end, RankResult::End::trapped);
        ASSERT_EQ(kinds_of(*devices[1]), std::vector{FindingKind::host_touch});
        const Finding& finding = devices[1]->findings().at(0);
        EXPECT_THAT(finding.text,
                    HasSubstr(std::string("host ") + verb +
                              " device memory: rank 1, byte 128 of 8,192 in "
                              "\"param b\" (allocated at simulated_device_test.cpp:"));
        EXPECT_THAT(finding.fields, Contains(ErrorField{"offset_bytes", "128"}));
        EXPECT_THAT(finding.fields, Contains(ErrorField{"tag", "param b"}));
        EXPECT_THAT(finding.fields, Contains(ErrorField{"operation", std::string("host ") + verb}));
        EXPECT_THROW(rethrow_first(results), DeviceError);
    }
}

TEST(HostTouch, ReleasesTheOthersAndLeavesNoExceptionBehind) {
    for (int round = 0; round < 200; ++round) {
        std::vector<std::unique_ptr<SimulatedDevice>> devices;
        const auto results = touch_on_rank_one(devices, Touching::read);
        EXPECT_EQ(std::current_exception(), nullptr);
        for (const std::size_t survivor : {std::size_t{0}, std::size_t{2}}) {
            try {
                std::rethrow_exception(results[survivor].error);
            } catch (const RankLost& error) {
                EXPECT_THAT(error.fields(), Contains(ErrorField{"end", "trapped"}));
                EXPECT_THAT(error.fields(), Contains(ErrorField{"rank", "rank 1"}));
            }
        }
    }
}

TEST(HostTouch, OfFreedMemoryNamesWhoseItWas) {
    const auto device = make_simulated_device({});
    const Stream stream(*device, "stream");
    volatile std::byte* address = nullptr;
    {
        const DeviceBuffer memory(*device, 64, stream, "brief");
        address = memory.data() + 3;
    }
    const auto results =
        run_ranks({.size = 1}, [&](Communicator&) { static_cast<void>(*address); });
    EXPECT_EQ(results[0].end, RankResult::End::trapped);
    EXPECT_THAT(device->findings().at(0).text, HasSubstr("byte 3 of \"brief\", freed at"));
}

TEST(HostTouchDeathTest, OutsideOfARankSaysWhatHappenedAndEndsTheProcess) {
    const auto device = make_simulated_device({});
    const Stream stream(*device, "stream");
    const DeviceBuffer memory(*device, 64, stream, "memory");
    volatile std::byte* const address = memory.data();
    EXPECT_DEATH(static_cast<void>(*address), "error: host read device memory: rank 0, byte 0");
}

TEST(HostTouchDeathTest, OtherFaultsGoToTheHandlerFoundBefore) {
    const auto device = make_simulated_device({});
    EXPECT_DEATH(
        {
            rethrow_first(run_ranks({.size = 1}, [](Communicator&) {
                volatile int* const nowhere = reinterpret_cast<volatile int*>(std::uintptr_t{64});
                *nowhere = 1;
            }));
        },
        "");
}

}  // namespace
}  // namespace swaplab::sim
