#include "race_programs.hpp"

#include "swaplab/sim/buffer.hpp"
#include "swaplab/sim/device_trace.hpp"
#include "swaplab/sim/digest.hpp"
#include "swaplab/sim/random.hpp"
#include "swaplab/sim/stream.hpp"

#include <algorithm>
#include <functional>

namespace swaplab::sim {
namespace {

using Use = std::function<void(Device&)>;

DeviceTrace recorded(const SimulatedDeviceOptions& options, const Use& use) {
    DeviceProgram program;
    const auto device = make_simulated_device(options);
    use(*make_recording_device(*device, program));
    device->finish();
    return make_trace(options, std::move(program), *device);
}

std::vector<std::string> texts(const SimulatedDevice& device) {
    std::vector<std::string> out;
    for (const Finding& finding : device.findings()) {
        out.push_back(finding.text);
    }
    return out;
}

SimulatedDeviceOptions with(Schedule schedule, std::uint64_t seed = 1) {
    SimulatedDeviceOptions options;
    options.schedule = schedule;
    options.seed = seed;
    options.capacity_bytes = 1U << 20U;
    return options;
}

/// Every kind of call, and some that are refused.
void use_everything(Device& device) {
    const Stream upload(device, "upload");
    const Stream blocking(device, "blocking", StreamKind::blocking);
    const Event done(device);
    PinnedBuffer host(device, 64, "host");
    DeviceBuffer memory(device, 64, upload, "memory");
    std::vector<std::byte> pageable(32);
    EXPECT_THROW(DeviceBuffer(device, 1U << 21U, upload, "too large"), OutOfDeviceMemory);
    const DeviceBuffer later(device, 300, blocking, "later");
    device.copy_async(memory.data(), host.data(), 64, CopyDirection::host_to_device, upload);
    device.copy_pageable(memory.data(), pageable.data(), 32, CopyDirection::host_to_device, upload);
    device.copy_pageable(pageable.data(), memory.data(), 32, CopyDirection::device_to_host, upload);
    device.fill_async(later.data(), std::byte{7}, 300, device.default_stream());
    device.launch({"add", {{memory.data(), 64}}, {{memory.data(), 32}}, {}, {}}, upload);
    device.call_host({"note", {}, {{host.data(), 8}}, [] {}}, upload);
    EXPECT_THROW(
        device.copy_async(memory.data(), host.data(), 65, CopyDirection::host_to_device, upload),
        ArgumentError);
    EXPECT_THROW(
        device.copy_async(pageable.data(), memory.data(), 8, CopyDirection::device_to_host, upload),
        ArgumentError);
    device.record(done, upload);
    device.wait(blocking, done);
    while (!device.query(done)) {
    }
    device.host_access(host.data(), 8, Access::read);
    device.host_access(host.data(), 8, Access::write);
    device.synchronize(blocking.ref());
    device.synchronize(device.default_stream());
}

void use_everything_twice(Device& device) {
    for (int i = 0; i < 2; ++i) {
        const Stream one(device, "one");
        const Stream blocking(device, "blocking", StreamKind::blocking);
        const Event done(device);
        PinnedBuffer host(device, 64, "host");
        const DeviceBuffer memory(device, 64, one, "memory");
        std::vector<std::byte> pageable(32);
        device.copy_async(memory.data(), host.data(), 64, CopyDirection::host_to_device, one);
        device.copy_pageable(memory.data(), pageable.data(), 32, CopyDirection::host_to_device,
                             blocking);
        device.copy_pageable(pageable.data(), memory.data(), 32, CopyDirection::device_to_host,
                             one);
        device.launch({"add", {{memory.data(), 64}}, {{memory.data(), 32}}, {}, {}}, one);
        device.call_host({"note", {}, {{host.data(), 8}}, [] {}}, one);
        device.record(done, one);
        device.wait(blocking, done);
        device.fill_async(memory.data(), std::byte{7}, 64, device.default_stream());
        device.host_access(host.data(), 8, Access::write);
        device.synchronize(blocking.ref());
        device.synchronize(one.ref());
    }
}

TEST(Trace, ReplaysEveryKindOfCall) {
    for (const Schedule schedule : {Schedule::fifo, Schedule::random, Schedule::latest}) {
        for (const auto policy :
             {AllocationPolicy::raw, AllocationPolicy::caching, AllocationPolicy::stream_ordered}) {
            SimulatedDeviceOptions options = with(schedule, 5);
            options.allocation = policy;
            options.capacity_bytes = 1U << 23U;
            const DeviceTrace trace = recorded(options, [](Device& device) {
                const Stream one(device, "one");
                const DeviceBuffer memory(device, 512, one, "memory");
                device.fill_async(memory.data(), std::byte{1}, 512, one);
                device.synchronize(one.ref());
            });
            EXPECT_EQ(replay(trace)->execution_digest(), trace.digest);
        }
        const DeviceTrace trace = recorded(with(schedule, 5), use_everything);
        EXPECT_EQ(replay(trace)->execution_digest(), trace.digest);
    }
}

TEST(Trace, OfARandomProgramRunsAgainWithTheSameFindingsAndPeaks) {
    for (std::uint64_t seed = 1; seed <= 200; ++seed) {
        race_programs::Program program = race_programs::make_correct(seed);
        Rng rng(seed);
        const auto is_edge = [](const race_programs::Step& step) { return step.is_edge(); };
        const auto edge = std::find_if(program.steps.begin(), program.steps.end(), is_edge);
        if (edge != program.steps.end() && rng.below(2) == 0) {
            program.steps.erase(edge);  // a race, perhaps
        }
        const SimulatedDeviceOptions options = with(Schedule::random, seed);
        DeviceProgram calls;
        const auto device = make_simulated_device(options);
        race_programs::run(program, *make_recording_device(*device, calls));
        device->finish();
        const DeviceTrace trace = make_trace(options, calls, *device);
        const auto again = replay(trace);
        ASSERT_EQ(again->execution_digest(), device->execution_digest()) << seed;
        ASSERT_EQ(texts(*again), texts(*device)) << seed;
        ASSERT_EQ(again->trace(), device->trace()) << seed;
        for (const Size size : {Size::requested, Size::rounded}) {
            ASSERT_EQ(again->worst_peak(size).bytes, device->worst_peak(size).bytes) << seed;
        }
    }
}

/// Memory of one stream that another one may have early, by luck, once it has run; and uploads that
/// may or may not have run when their calls return.
void leave_much_open(Device& device) {
    const Stream one(device, "one");
    const Stream two(device, "two");
    std::vector<std::byte> pageable(64);
    for (int i = 0; i < 20; ++i) {
        {
            const DeviceBuffer first(device, 4U << 20U, one, "first");
            device.fill_async(first.data(), std::byte{1}, 64, one);
        }
        const DeviceBuffer target(device, 64, one, "target");
        device.copy_pageable(target.data(), pageable.data(), 64, CopyDirection::host_to_device,
                             one);
        const DeviceBuffer second(device, 4U << 20U, two, "second");
        device.fill_async(second.data(), std::byte{2}, 64, two);
    }
    device.synchronize(one.ref());
    device.synchronize(two.ref());
}

bool equal(const AllocatorStats& a, const AllocatorStats& b) {
    return a.requested == b.requested && a.allocated == b.allocated && a.active == b.active &&
           a.reserved == b.reserved && a.segments == b.segments && a.retries == b.retries;
}

TEST(Trace, KnowsWhatBecameOfWhatIsLeftOpen) {
    std::size_t happened = 0;
    for (const Schedule schedule : {Schedule::random, Schedule::pct, Schedule::chosen}) {
        for (std::uint64_t seed = 1; seed <= 20; ++seed) {
            SimulatedDeviceOptions options = with(schedule, seed);
            options.poison = false;
            options.allocation = AllocationPolicy::stream_ordered;
            options.capacity_bytes = 1U << 30U;
            Rng rng(seed);
            options.choose = [&](std::size_t count) { return rng.below(count); };
            DeviceProgram calls;
            const auto device = make_simulated_device(options);
            leave_much_open(*make_recording_device(*device, calls));
            device->finish();
            const DeviceTrace trace = decode_trace(encode(make_trace(options, calls, *device)));
            const auto again = replay(trace);
            ASSERT_EQ(again->execution_digest(), trace.digest) << seed;
            ASSERT_EQ(again->chances(), device->chances()) << seed;
            ASSERT_EQ(again->trace(), device->trace()) << seed;
            ASSERT_EQ(texts(*again), texts(*device)) << seed;
            ASSERT_TRUE(equal(again->allocator_stats(), device->allocator_stats())) << seed;
            const auto& all = device->chances();
            ASSERT_GE(all.size(), 20U);
            happened += static_cast<std::size_t>(std::count(all.begin(), all.end(), true));
        }
    }
    EXPECT_GT(happened, 300U);
}

TEST(Trace, KnowsWhatWasAllocatedOutsideOfThePool) {
    SimulatedDeviceOptions options = with(Schedule::fifo);
    options.allocation = AllocationPolicy::caching;
    options.capacity_bytes = 1U << 25U;
    DeviceProgram calls;
    const auto device = make_simulated_device(options);
    const auto recording = make_recording_device(*device, calls);
    {
        const Stream one(*recording, "one");
        const DeviceBuffer inside(*recording, 1U << 20U, one, "inside");
        void* outside = recording->allocate_outside_pool(5U << 20U, one, "outside");
        recording->deallocate(outside, one);
    }
    device->finish();
    const auto again = replay(decode_trace(encode(make_trace(options, calls, *device))));
    EXPECT_TRUE(equal(again->allocator_stats(), device->allocator_stats()));
    EXPECT_EQ(again->trace(), device->trace());
}

TEST(Trace, OfALostDeviceLosesItAgain) {
    const DeviceTrace trace = recorded(with(Schedule::fifo), [](Device& device) {
        const Stream one(device, "one");
        const auto body = [](const DeviceAccess&) { throw std::runtime_error("bad address"); };
        device.launch({"broken", {}, {}, body, {}}, one);
        EXPECT_THROW(device.synchronize(one.ref()), DeviceLost);
        EXPECT_THROW(device.launch({"next", {}, {}, {}, {}}, one), DeviceLost);
    });
    EXPECT_TRUE(trace.program.calls.back().kind == CallKind::destroy_stream);
    EXPECT_EQ(replay(trace)->execution_digest(), trace.digest);
    EXPECT_EQ(std::count_if(trace.program.calls.begin(), trace.program.calls.end(),
                            [](const DeviceCall& call) { return call.failed; }),
              1);
}

TEST(Trace, ThatIssuesSomethingElseDiverges) {
    DeviceTrace trace = recorded(with(Schedule::random), use_everything);
    const auto fill = std::find_if(trace.program.calls.begin(), trace.program.calls.end(),
                                   [](const DeviceCall& c) { return c.kind == CallKind::fill; });
    fill->writes.front().bytes = 299;
    EXPECT_THROW(static_cast<void>(replay(trace)), ReplayDiverged);
}

bool equal(const DeviceTrace& a, const DeviceTrace& b) {
    return a.program == b.program && a.digest == b.digest && a.options.record == b.options.record &&
           a.options.rank == b.options.rank && a.options.chances == b.options.chances &&
           a.options.seed == b.options.seed &&
           a.options.capacity_bytes == b.options.capacity_bytes &&
           a.options.context_bytes == b.options.context_bytes &&
           a.options.schedule == b.options.schedule && a.options.poison == b.options.poison &&
           a.options.check_accesses == b.options.check_accesses &&
           a.options.allocation == b.options.allocation && a.options.pinned == b.options.pinned &&
           a.options.pinned_quota_bytes == b.options.pinned_quota_bytes &&
           a.options.release_threshold_bytes == b.options.release_threshold_bytes &&
           a.options.pct_depth == b.options.pct_depth &&
           a.options.pct_operations == b.options.pct_operations;
}

TEST(TraceFile, IsReadAsItWasWritten) {
    SimulatedDeviceOptions options = with(Schedule::random, ~std::uint64_t{0});
    options.rank = 3;
    options.allocation = AllocationPolicy::stream_ordered;
    options.pinned = PinnedPolicy::power_of_two;
    options.poison = false;
    options.capacity_bytes = 1U << 24U;
    options.context_bytes = 1000;
    const DeviceTrace trace = recorded(options, [](Device& device) {
        const Stream one(device, "one");
        const PinnedBuffer host(device, 64, "host");
    });
    EXPECT_TRUE(equal(decode_trace(encode(trace)), trace));
    const DeviceTrace everything = recorded(with(Schedule::latest), use_everything);
    EXPECT_TRUE(equal(decode_trace(encode(everything)), everything));
    const DeviceTrace nothing = recorded(with(Schedule::fifo), [](Device&) {});
    EXPECT_TRUE(equal(decode_trace(encode(nothing)), nothing));
}

TEST(TraceFile, TakesFewBytesPerCall) {
    const DeviceTrace trace = recorded(with(Schedule::fifo), [](Device& device) {
        const Stream one(device, "one");
        const DeviceBuffer memory(device, 512, one, "memory");
        for (int i = 0; i < 1000; ++i) {
            device.fill_async(memory.data(), std::byte{1}, 512, one);
        }
        device.synchronize(one.ref());
    });
    EXPECT_LT(encode(trace).size(), 1000U * 32U);
}

/// As if somebody had written these bytes on purpose.
std::vector<std::byte> sealed(std::vector<std::byte> bytes) {
    const std::size_t body = bytes.size() - 8;
    RollingDigest digest;
    digest.add(std::span(bytes).first(body));
    for (unsigned i = 0; i < 8; ++i) {
        bytes[body + i] = static_cast<std::byte>(digest.value() >> (8 * i));
    }
    return bytes;
}

TEST(TraceFile, CutAnywhereIsRefused) {
    const auto bytes = encode(recorded(with(Schedule::fifo), use_everything));
    for (std::size_t size = 0; size < bytes.size(); ++size) {
        const std::vector<std::byte> cut(bytes.begin(),
                                         bytes.begin() + static_cast<std::ptrdiff_t>(size));
        ASSERT_THROW(static_cast<void>(decode_trace(cut)), ArgumentError) << size;
        if (size >= 24) {
            ASSERT_THROW(static_cast<void>(decode_trace(sealed(cut))), ArgumentError) << size;
        }
    }
}

TEST(TraceFile, WithAnyChangedByteIsRefused) {
    const auto bytes = encode(recorded(with(Schedule::fifo), use_everything));
    for (std::size_t at = 0; at < bytes.size(); ++at) {
        auto changed = bytes;
        changed[at] ^= std::byte{0x10};
        ASSERT_THROW(static_cast<void>(decode_trace(changed)), ArgumentError) << at;
    }
}

// Whoever seals a changed file gets a trace that can be written again, or a refusal.
TEST(TraceFile, ChangedOnPurposeIsReadOrRefused) {
    const auto bytes = encode(recorded(with(Schedule::fifo), use_everything));
    Rng rng(1);
    int read = 0;
    for (int i = 0; i < 20'000; ++i) {
        auto changed = bytes;
        for (std::uint64_t flips = 1 + rng.below(3); flips > 0; --flips) {
            changed[rng.below(changed.size())] = static_cast<std::byte>(rng.below(256));
        }
        try {
            const DeviceTrace trace = decode_trace(sealed(std::move(changed)));
            ASSERT_TRUE(equal(decode_trace(encode(trace)), trace));
            ++read;
        } catch (const ArgumentError&) {
        }
    }
    EXPECT_GT(read, 100);
}

TEST(TraceFile, ChangedOnPurposeRunsOrIsRefused) {
    Rng rng(2);
    int ran = 0;
    int refused = 0;
    for (const auto policy :
         {AllocationPolicy::raw, AllocationPolicy::caching, AllocationPolicy::stream_ordered}) {
        SimulatedDeviceOptions options = with(Schedule::random, 3);
        options.allocation = policy;
        options.capacity_bytes = 1U << 25U;
        const auto bytes = encode(recorded(options, use_everything_twice));
        for (int i = 0; i < 4000; ++i) {
            auto changed = bytes;
            for (std::uint64_t flips = 1 + rng.below(4); flips > 0; --flips) {
                changed[rng.below(changed.size())] = static_cast<std::byte>(rng.below(256));
            }
            try {
                const DeviceTrace trace = decode_trace(sealed(std::move(changed)));
                if (most_bytes_held(trace.program) <= 1U << 26U) {
                    static_cast<void>(replay(trace));
                    ++ran;
                }
            } catch (const Error& error) {
                ASSERT_NE(error.message(), std::string());
                ++refused;
            }
        }
    }
    EXPECT_GT(ran, 100);
    EXPECT_GT(refused, 100);
}

// Ordinary memory may lie where pinned memory was: the replay must not read there.
TEST(Trace, OfFreedPinnedMemoryThatIsOrdinarySinceRunsAgain) {
    DeviceTrace trace = recorded(with(Schedule::fifo), [](Device& device) {
        const Stream one(device, "one");
        const DeviceBuffer memory(device, 1U << 16U, one, "memory");
        device.synchronize(one.ref());
        { const PinnedBuffer gone(device, 1U << 26U, "gone"); }
        std::vector<std::byte> pageable(1U << 16U);
        device.copy_pageable(memory.data(), pageable.data(), pageable.size(),
                             CopyDirection::host_to_device, one);
        device.copy_pageable(pageable.data(), memory.data(), pageable.size(),
                             CopyDirection::device_to_host, one);
    });
    for (DeviceCall& call : trace.program.calls) {
        if (call.kind == CallKind::copy_pageable) {
            const bool up =
                call.variant == static_cast<std::uint8_t>(CopyDirection::host_to_device);
            (up ? call.reads : call.writes).front().memory = 1;
        }
    }
    EXPECT_EQ(replay(trace)->execution_digest(), trace.digest);
}

TEST(Trace, TellsTheMostBytesThatItHolds) {
    const DeviceTrace trace = recorded(with(Schedule::fifo), [](Device& device) {
        const Stream one(device, "one");
        const PinnedBuffer pinned(device, 10, "pinned");
        for (const std::uint64_t bytes : {100U, 300U, 200U}) {
            const DeviceBuffer memory(device, bytes, one, "memory");
        }
        EXPECT_THROW(DeviceBuffer(device, 1U << 21U, one, "too large"), OutOfDeviceMemory);
    });
    EXPECT_EQ(most_bytes_held(trace.program), 310U);
}

TEST(TraceFile, OfAnotherVersionSaysWhichItIs) {
    auto bytes = encode(recorded(with(Schedule::fifo), use_everything));
    bytes[14] = std::byte{9};
    try {
        static_cast<void>(decode_trace(bytes));
        FAIL() << "read";
    } catch (const ArgumentError& error) {
        EXPECT_THAT(error.what(), ::testing::HasSubstr("version 9 is not 3"));
    }
}

TEST(TraceFile, NamesNothingThatIsNotThere) {
    DeviceTrace trace = recorded(with(Schedule::fifo), use_everything);
    const auto refused = [&](const std::function<void(DeviceCall&)>& change) {
        DeviceTrace changed = trace;
        const auto fill =
            std::find_if(changed.program.calls.begin(), changed.program.calls.end(),
                         [](const DeviceCall& c) { return c.kind == CallKind::fill; });
        change(*fill);
        EXPECT_THROW(static_cast<void>(decode_trace(encode(changed))), ArgumentError);
    };
    refused([](DeviceCall& call) { call.stream = 3; });
    refused([](DeviceCall& call) { call.event = 9; });
    refused([](DeviceCall& call) { call.name = 1000; });
    refused([](DeviceCall& call) { call.writes.front().memory = 9; });
}

/// About 200 correct calls and one missing wait among them.
void race_in_the_crowd(Device& device) {
    const Stream one(device, "one");
    const Stream two(device, "two");
    const Event done(device);
    DeviceBuffer a(device, 1024, one, "a");
    DeviceBuffer b(device, 1024, one, "b");
    for (int i = 0; i < 30; ++i) {
        device.fill_async(a.data(), std::byte{1}, 1024, one);
        device.launch({"b", {{a.data(), 1024}}, {{b.data(), 1024}}, {}, {}}, one);
        device.record(done, one);
        if (i != 17) {
            device.wait(two, done);
        }
        device.launch({"c", {{b.data(), 512}}, {{b.data(), 512}}, {}, {}}, two);
        device.record(done, two);
        device.wait(one, done);
    }
    device.synchronize(one.ref());
    device.synchronize(two.ref());
}

TEST(Shrink, LeavesSixCallsOfARaceAmongTwoHundred) {
    const DeviceTrace trace = recorded(with(Schedule::random, 3), race_in_the_crowd);
    ASSERT_GT(trace.program.calls.size(), 180U);
    const auto device = replay(trace);
    const DeviceTrace small = shrink(trace, device->findings().front());
    EXPECT_LE(small.program.calls.size(), 6U);
    EXPECT_LE(small.options.record.size(), 6U);
    EXPECT_EQ(small.options.schedule, Schedule::fifo);
    const auto again = replay(decode_trace(encode(small)));
    EXPECT_EQ(again->execution_digest(), small.digest);
    EXPECT_THAT(texts(*again), ::testing::Contains(device->findings().front().text));
}

TEST(Shrink, LeavesNoCallThatCouldGo) {
    int races = 0;
    for (std::uint64_t seed = 1; seed <= 40; ++seed) {
        race_programs::Program program = race_programs::make_correct(seed);
        std::erase_if(program.steps,
                      [](const race_programs::Step& step) { return step.is_edge(); });
        DeviceProgram calls;
        const auto device = make_simulated_device(with(Schedule::random, seed));
        race_programs::run(program, *make_recording_device(*device, calls));
        device->finish();
        if (device->findings().front().kind != FindingKind::race) {
            continue;
        }
        ++races;
        const DeviceTrace trace = make_trace(with(Schedule::random, seed), calls, *device);
        const Finding& race = device->findings().front();
        const DeviceTrace small = shrink(trace, race);
        EXPECT_LE(small.program.calls.size(), 6U);
        EXPECT_THAT(texts(*replay(small)), ::testing::Contains(race.text));
        EXPECT_EQ(shrink(small, race).program, small.program);
    }
    EXPECT_GT(races, 10);
}

TEST(Shrink, RefusesATraceWithoutTheFinding) {
    const DeviceTrace trace = recorded(with(Schedule::fifo), use_everything);
    const Finding other{FindingKind::leak, "leak: another one", {}};
    EXPECT_THROW(static_cast<void>(shrink(trace, other)), ArgumentError);
}

// Pinned: equal on every machine and build.
TEST(Trace, IsTheSameInEveryBuild) {
    SimulatedDeviceOptions options = with(Schedule::random, 7);
    const DeviceTrace trace = recorded(options, [](Device& device) {
        const Stream one(device, "one", StreamKind::non_blocking, {"a.cpp", 6});
        const Stream two(device, "two", StreamKind::non_blocking, {"a.cpp", 7});
        for (int i = 0; i < 50; ++i) {
            device.launch({std::to_string(i), {}, {}, {}, {}}, i % 3 == 0 ? one : two,
                          {"a.cpp", 1});
        }
        const Event end(device, {"a.cpp", 8});
        device.record(end, one, {"a.cpp", 2});
        device.wait(two, end, {"a.cpp", 3});
        device.record(end, two, {"a.cpp", 4});
        device.synchronize(end, {"a.cpp", 5});
    });
    EXPECT_EQ(trace.digest, 6387914944475541944U);
    EXPECT_EQ(sha256_hex(encode(trace)).substr(0, 16), "53bd5f6bd0d22f45");
}

TEST(Trace, OfTwoHundredRandomProgramsIsTheSameInEveryBuild) {
    RollingDigest all;
    for (const Schedule schedule : {Schedule::random, Schedule::pct, Schedule::latest}) {
        for (std::uint64_t seed = 1; seed <= 200; ++seed) {
            const auto device = make_simulated_device(with(schedule, seed));
            race_programs::run(race_programs::make_correct(seed), *device);
            device->finish();
            all.add(device->execution_digest());
        }
    }
    SimulatedDeviceOptions options = with(Schedule::random, 7);
    options.allocation = AllocationPolicy::stream_ordered;
    options.capacity_bytes = 1U << 30U;
    all.add(recorded(options, leave_much_open).digest);
    EXPECT_EQ(all.value(), 1235408636115911192U);
}

TEST(Trace, IsTheSameOverAThousandRepeats) {
    const auto first = encode(recorded(with(Schedule::random, 7), use_everything));
    for (int i = 0; i < 1000; ++i) {
        ASSERT_EQ(encode(recorded(with(Schedule::random, 7), use_everything)), first);
    }
}

}  // namespace
}  // namespace swaplab::sim
