#include "files/whole_file.hpp"
#include "replay/replay_command.hpp"
#include "replay/trace_file.hpp"
#include "support/storage_wrappers.hpp"

#include "swaplab/sim/buffer.hpp"
#include "swaplab/sim/stream.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <sstream>

namespace swaplab::harness {
namespace {

using sim::DeviceBuffer;
using sim::DeviceProgram;
using sim::DeviceTrace;
using sim::Stream;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;

/// Two streams use a buffer; the second waits for the first, or not.
DeviceTrace trace_of(bool waits, int rank = 0) {
    sim::SimulatedDeviceOptions options;
    options.rank = rank;
    options.capacity_bytes = 1U << 20U;
    options.schedule = sim::Schedule::random;
    const auto device = sim::make_simulated_device(options);
    DeviceProgram program;
    const auto recording = sim::make_recording_device(*device, program);
    {
        const Stream one(*recording, "one");
        const Stream two(*recording, "two");
        const sim::Event done(*recording);
        const DeviceBuffer memory(*recording, 4096, one, "slot");
        for (int i = 0; i < 20; ++i) {
            recording->fill_async(memory.data(), std::byte{1}, 4096, one);
        }
        recording->record(done, one);
        if (waits) {
            recording->wait(two, done);
        }
        recording->launch({"use", {{memory.data(), 4096}}, {}, {}, {}}, two);
        recording->synchronize(two.ref());
        recording->synchronize(done);
    }
    device->finish();
    return sim::make_trace(options, program, *device);
}

struct Outcome {
    ExitCode code{};
    std::string out;
};

class Replay : public testing::Test {
  protected:
    Replay() {
        write_new(*storage_, "good", sim::encode(trace_of(true)));
        write_new(*storage_, "race", sim::encode(trace_of(false)));
    }
    Outcome run(const ReplayOptions& options) { return run(*storage_, options); }
    static Outcome run(Storage& storage, const ReplayOptions& options) {
        std::ostringstream out;
        const ExitCode code = replay_command(storage, options, out);
        return {code, out.str()};
    }
    std::string error_of(const ReplayOptions& options, sim::ErrorKind kind) {
        try {
            run(options);
        } catch (const sim::Error& error) {
            EXPECT_EQ(error.kind(), kind) << error.message();
            return error.message();
        }
        ADD_FAILURE() << "no error";
        return "";
    }
    void overwrite(const std::string& path, std::span<const std::byte> bytes) {
        if (storage_->exists(path)) {
            storage_->remove(path);
        }
        write_new(*storage_, path, bytes);
    }

    std::unique_ptr<MemoryStorage> storage_ = make_memory_storage();
};

TEST_F(Replay, TellsPeaksTimeAndDigest) {
    const Outcome ran = run({.traces = {"good"}, .profile = "h200_pcie5"});
    EXPECT_EQ(ran.code, ExitCode::ok);
    EXPECT_THAT(ran.out, HasSubstr("rank 0, random (seed 1), raw, capacity 1,048,576 B"));
    EXPECT_THAT(ran.out,
                HasSubstr("peak     observed 4,096 B, worst over all schedules 4,096 B\n"));
    // 20 fills and a kernel: 5 us of launch and 4096 B at 4.3 TB/s each
    EXPECT_THAT(ran.out, HasSubstr("time     105.020004 us (virtual, h200_pcie5)\n"));
    EXPECT_THAT(ran.out, HasSubstr(fmt::format("digest   {:016x}\n", trace_of(true).digest)));
    EXPECT_THAT(ran.out, HasSubstr("1 trace, 0 findings\n"));
}

TEST_F(Replay, FailsWhereThereIsAFinding) {
    const Outcome ran = run({.traces = {"good", "race"}});
    EXPECT_EQ(ran.code, ExitCode::failed);
    EXPECT_THAT(ran.out, HasSubstr("finding  race: rank 0, \"slot\" bytes 0 to 4,096: launch use"));
    EXPECT_THAT(ran.out, HasSubstr("2 traces, 1 finding\n"));
    EXPECT_EQ(run({.traces = {"race"}, .quiet = true}).out, "1 trace, 1 finding\n");
}

TEST_F(Replay, SaysItAllInJson) {
    const Outcome ran = run({.traces = {"race"}, .json = true});
    const auto json = nlohmann::json::parse(ran.out);
    EXPECT_EQ(json.at("schema"), "swaplab.replay/1");
    EXPECT_EQ(json.at("exit"), 1);
    const auto& trace = json.at("traces").at(0);
    EXPECT_EQ(trace.at("findings").at(0).at("kind"), "race");
    EXPECT_EQ(trace.at("worst_peak_bytes"), 4096);
    EXPECT_EQ(trace.at("virtual_picoseconds"), 21U * 4'096'000);
    EXPECT_TRUE(trace.at("difference").is_null());
}

TEST_F(Replay, OfAnotherRunThanTheRecordedOneFails) {
    DeviceTrace other = trace_of(true);
    ++other.digest;
    overwrite("other", sim::encode(other));
    Outcome ran = run({.traces = {"other"}});
    EXPECT_EQ(ran.code, ExitCode::failed);
    EXPECT_THAT(ran.out, HasSubstr("differs  digest "));
    other = trace_of(true);
    other.program.calls.resize(8);
    overwrite("other", sim::encode(other));
    ran = run({.traces = {"other"}});
    EXPECT_EQ(ran.code, ExitCode::failed);
    EXPECT_THAT(ran.out, HasSubstr("differs  the program is not the recorded one"));
    ran = run({.traces = {"other"}, .json = true});
    EXPECT_THAT(nlohmann::json::parse(ran.out).at("traces").at(0).at("difference"),
                HasSubstr("not the recorded one"));
}

TEST_F(Replay, ShrinksToTheSameFinding) {
    const Outcome ran = run({.traces = {"race"}, .shrink = "small"});
    EXPECT_THAT(ran.out, HasSubstr("calls, 25 to 3 operations, schedule fifo: small\n"));
    const auto before = sim::replay(read_trace(*storage_, "race"));
    const DeviceTrace small = read_trace(*storage_, "small");
    EXPECT_LT(small.program.calls.size(), trace_of(false).program.calls.size());
    EXPECT_EQ(sim::replay(small)->findings().front().text, before->findings().front().text);
    EXPECT_EQ(run({.traces = {"small"}}).code, ExitCode::failed);
}

TEST_F(Replay, HasNothingToShrinkWithoutAFinding) {
    EXPECT_THAT(error_of({.traces = {"good"}, .shrink = "small"}, sim::ErrorKind::argument),
                HasSubstr("good has no finding"));
    EXPECT_THAT(error_of({.traces = {"race", "race"}, .shrink = "small"}, sim::ErrorKind::argument),
                HasSubstr("one TRACE; found 2"));
    EXPECT_FALSE(storage_->exists("small"));
}

TEST_F(Replay, OverwritesNothing) {
    write_new(*storage_, "mine", std::string("mine"));
    EXPECT_THAT(error_of({.traces = {"race"}, .chart = "mine"}, sim::ErrorKind::storage),
                HasSubstr("already exists"));
    error_of({.traces = {"race"}, .shrink = "mine"}, sim::ErrorKind::storage);
    EXPECT_EQ(storage_->file_bytes("mine").size(), 4U);
}

TEST_F(Replay, LeavesNoHalfOfAFileWhereAWriteFails) {
    for (const std::string failing : {"create", "write", "close", "rename"}) {
        tests::FaultyStorage faulty(
            *storage_, [&](const std::string& operation, const std::string& path) {
                if (operation == failing && path.find("chart") != std::string::npos) {
                    throw StorageError("no space left", {{"operation", operation}});
                }
            });
        EXPECT_THROW(run(faulty, {.traces = {"good"}, .chart = "chart"}), StorageError) << failing;
        EXPECT_FALSE(storage_->exists("chart")) << failing;
        EXPECT_FALSE(storage_->exists("chart.part")) << failing;
    }
    EXPECT_EQ(run({.traces = {"good"}, .chart = "chart"}).code, ExitCode::ok);
    EXPECT_TRUE(nlohmann::json::accept(storage_->file_bytes("chart")));
}

TEST_F(Replay, RefusesWhatIsNoTrace) {
    const auto bytes = sim::encode(trace_of(true));
    for (std::size_t size = 0; size < bytes.size(); size += 7) {
        overwrite("cut", std::span(bytes).first(size));
        ASSERT_THAT(error_of({.traces = {"cut"}}, sim::ErrorKind::argument), HasSubstr("cut: no"));
    }
    auto version = bytes;
    version[14] = std::byte{99};
    overwrite("cut", version);
    EXPECT_THAT(error_of({.traces = {"cut"}}, sim::ErrorKind::argument), HasSubstr("version 99"));
    overwrite("cut", std::vector<std::byte>(5000, std::byte{0xff}));
    error_of({.traces = {"cut"}}, sim::ErrorKind::argument);
    error_of({.traces = {"missing"}}, sim::ErrorKind::storage);
    error_of({.traces = {"good"}, .profile = "h100"}, sim::ErrorKind::argument);
    error_of({.traces = {"good"}, .profile = "./h100"}, sim::ErrorKind::storage);
}

TEST_F(Replay, RefusesWhatThisMachineCannotHold) {
    DeviceTrace large = trace_of(true);
    large.options.capacity_bytes = std::uint64_t{1} << 46U;
    for (sim::DeviceCall& call : large.program.calls) {
        if (call.kind == sim::CallKind::allocate) {
            call.writes.front().bytes = std::uint64_t{1} << 45U;
        }
    }
    overwrite("large", sim::encode(large));
    EXPECT_THAT(error_of({.traces = {"large"}}, sim::ErrorKind::device),
                HasSubstr("the trace holds 35,184,372,088,832 B"));
}

TEST(FileStem, IsPlainAndOfOneRun) {
    EXPECT_THAT(file_stem("shards/lost[specimen a, world.size=2]"),
                MatchesRegex("shards_lost_specimen_a_world.size_2\\.[0-9a-f]{12}"));
    EXPECT_NE(file_stem("a/b"), file_stem("a_b"));
    EXPECT_NE(file_stem("a[x=1]"), file_stem("a[x 1]"));
    EXPECT_EQ(file_stem("a/b"), file_stem("a/b"));
    EXPECT_THAT(file_stem("../../\n\xff"), MatchesRegex("[.]{2}_[.]{2}\\.[0-9a-f]{12}"));
    EXPECT_LT(file_stem(std::string(5000, 'x')).size(), 140U);
}

}  // namespace
}  // namespace swaplab::harness
