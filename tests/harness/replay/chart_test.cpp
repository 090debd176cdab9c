#include "profile/device_profiles.hpp"
#include "replay/device_chart.hpp"

#include "swaplab/sim/buffer.hpp"
#include "swaplab/sim/device_trace.hpp"
#include "swaplab/sim/random.hpp"
#include "swaplab/sim/stream.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <map>
#include <memory>
#include <numeric>

namespace swaplab::harness {
namespace {

using nlohmann::json;
using sim::CopyDirection;
using sim::DeviceBuffer;
using sim::Event;
using sim::MemoryKind;
using sim::PinnedBuffer;
using sim::Stream;
using ::testing::ElementsAre;

/// Buckets through slots that are allocated and freed on their streams as they go.
void swap_some(sim::Device& device, std::uint64_t seed) {
    sim::Rng rng(seed);
    const Stream up(device, "up");
    const Stream work(device, "work");
    const Stream down(device, "down");
    PinnedBuffer host(device, 1U << 16U, "moments");
    for (int bucket = 0; bucket < 12; ++bucket) {
        const std::uint64_t bytes = 256 * (1 + rng.below(64));
        const Event uploaded(device);
        const Event updated(device);
        const DeviceBuffer slot(device, bytes, up, bucket % 2 == 0 ? "even" : "odd");
        device.copy_async(slot.data(), host.data(), bytes, CopyDirection::host_to_device, up);
        device.record(uploaded, up);
        device.wait(work, uploaded);
        device.launch({"update", {{slot.data(), bytes}}, {{slot.data(), bytes}}, {}, {}}, work);
        device.record(updated, work);
        device.wait(down, updated);
        device.copy_async(host.data(), slot.data(), bytes, CopyDirection::device_to_host, down);
        if (rng.below(2) == 0) {
            device.synchronize(down.ref());
        }
        device.record(uploaded, down);
        device.wait(up, uploaded);  // the slot is freed there
        if (rng.below(3) == 0) {
            const PinnedBuffer more(device, 4096, "more");
        }
    }
    device.synchronize(up.ref());
}

struct Recorded {
    sim::DeviceProgram program;
    std::unique_ptr<sim::SimulatedDevice> device;
};

Recorded recorded(std::uint64_t seed, int rank = 0) {
    sim::SimulatedDeviceOptions options;
    options.rank = rank;
    options.capacity_bytes = 1U << 20U;
    Recorded out;
    out.device = sim::make_simulated_device(options);
    swap_some(*sim::make_recording_device(*out.device, out.program), seed);
    out.device->finish();
    return out;
}

json chart_of(const std::vector<const sim::SimulatedDevice*>& devices,
              const sim::DeviceProfile& profile) {
    return json::parse(chart_json(devices, virtual_times(devices, profile), profile));
}

std::vector<json> events(const json& chart, const std::string& phase, std::size_t process) {
    std::vector<json> out;
    for (const json& event : chart.at("traceEvents")) {
        if (event.at("ph") == phase && event.at("pid") == process) {
            out.push_back(event);
        }
    }
    return out;
}

std::uint64_t highest(const json& chart, const std::string& counter) {
    std::uint64_t most = 0;
    for (const json& event : events(chart, "C", 0)) {
        if (event.at("name") == counter) {
            most = std::max(most, event.at("args").at("bytes").get<std::uint64_t>());
        }
    }
    return most;
}

TEST(Chart, HasARowPerEngineAndOneOfTheHost) {
    const Recorded a = recorded(1);
    const Recorded b = recorded(2, 7);
    const json chart =
        chart_of({a.device.get(), b.device.get()}, profile_named("h200_pcie5").profile);
    EXPECT_EQ(chart.at("otherData").at("profile"), "h200_pcie5");
    for (const std::size_t process : {0U, 1U}) {
        std::vector<std::string> names;
        for (const json& event : events(chart, "M", process)) {
            names.push_back(event.at("args").at("name"));
        }
        EXPECT_THAT(names, ElementsAre(process == 0 ? "rank 0" : "rank 7", "copy in", "copy out",
                                       "compute", "host"));
        std::map<int, std::map<std::string, int>> operations;
        for (const json& event : events(chart, "X", process)) {
            ++operations[event.at("tid")][event.at("name")];
        }
        const std::map<int, std::map<std::string, int>> expected{
            {1, {{"copy h2d", 12}}}, {2, {{"copy d2h", 12}}}, {3, {{"launch update", 12}}}};
        EXPECT_EQ(operations, expected);
        const json first = events(chart, "X", process).front();
        EXPECT_EQ(first.at("args").at("stream"), "up");
        EXPECT_EQ(first.at("args").at("tag"), "moments");
        EXPECT_GT(first.at("args").at("bytes"), 0);
        for (const json& event : events(chart, "i", process)) {
            EXPECT_EQ(event.at("tid"), 4) << event;
        }
    }
}

TEST(Chart, OfAnEngineNeverOverlaps) {
    for (const std::string& name : profile_names()) {
        const Recorded a = recorded(3);
        const Recorded b = recorded(4, 1);
        const json chart = chart_of({a.device.get(), b.device.get()}, profile_named(name).profile);
        for (const std::size_t process : {0U, 1U}) {
            std::map<int, std::uint64_t> busy_until;
            for (const json& event : events(chart, "X", process)) {
                std::uint64_t& until = busy_until[event.at("tid")];
                EXPECT_GE(event.at("args").at("begin_ps"), until) << name << event;
                until = event.at("args").at("end_ps");
                EXPECT_DOUBLE_EQ(event.at("ts").get<double>() + event.at("dur").get<double>(),
                                 static_cast<double>(until) / 1e6);
            }
            EXPECT_EQ(busy_until.size(), 3U);
        }
    }
}

// A counter that goes back in time shows a peak of operations that never were at once.
TEST(Chart, CountsForwardInTime) {
    const Recorded run = recorded(3);
    const json chart = chart_of({run.device.get()}, profile_named("h200_pcie5").profile);
    double last = 0;
    for (const json& event : events(chart, "C", 0)) {
        EXPECT_GE(event.at("ts").get<double>(), last) << event;
        last = event.at("ts");
    }
    EXPECT_GT(last, 0);
}

// The run in which operations begin in the order of the chart occupies what its counter says.
TEST(Chart, CountsWhatTheLedgerSaysOfThatRun) {
    for (std::uint64_t seed = 1; seed <= 40; ++seed) {
        const Recorded run = recorded(seed);
        const sim::DeviceProfile profile =
            profile_named(seed % 2 == 0 ? "unit" : "a100_pcie4").profile;
        const std::vector<const sim::SimulatedDevice*> devices{run.device.get()};
        const auto times = virtual_times(devices, profile).front();
        std::map<std::uint64_t, std::uint64_t> digests;
        for (const sim::ExecutedOperation& ran : run.device->execution_record()) {
            digests[ran.operation] = ran.digest;
        }
        std::vector<std::uint64_t> ids(times.size());
        std::iota(ids.begin(), ids.end(), std::uint64_t{0});
        std::stable_sort(ids.begin(), ids.end(), [&](std::uint64_t a, std::uint64_t b) {
            return times[a].begin_picoseconds < times[b].begin_picoseconds;
        });
        sim::SimulatedDeviceOptions options;
        options.capacity_bytes = 1U << 20U;
        options.schedule = sim::Schedule::replay;
        for (const std::uint64_t id : ids) {
            if (digests.count(id) != 0) {
                options.record.push_back({id, digests.at(id)});
            }
        }
        const auto again = sim::make_simulated_device(options);
        sim::run_program(run.program, *again);
        again->finish();
        const json chart = chart_of(devices, profile);
        const auto peak = [&](MemoryKind kind) {
            return again->ledger().peak(kind, sim::Size::requested, sim::Lifetime::occupied);
        };
        ASSERT_EQ(highest(chart, "device bytes"), peak(MemoryKind::device)) << seed;
        ASSERT_EQ(highest(chart, "pinned bytes"), peak(MemoryKind::pinned)) << seed;
        ASSERT_LE(highest(chart, "device bytes"), run.device->worst_peak().bytes) << seed;
        ASSERT_LE(highest(chart, "device bytes: even"), highest(chart, "device bytes"));
        ASSERT_GT(highest(chart, "device bytes: odd"), 0U);
        for (const json& event : events(chart, "C", 0)) {
            ASSERT_TRUE(event.at("args").at("bytes").is_number_unsigned());
        }
        const auto last = events(chart, "C", 0);
        ASSERT_EQ(last.back().at("args").at("bytes"), 0) << seed;
    }
}

// On an A100 an upload takes longer beside a download; ranks that share a host slow each other.
TEST(Chart, ShowsWhatDirectionsAndRanksTakeFromEachOther) {
    const auto copies = [](bool both) {
        auto device = sim::make_simulated_device({.capacity_bytes = 1U << 26U});
        {
            const Stream up(*device, "up");
            const Stream down(*device, "down");
            const std::uint64_t bytes = 1U << 24U;
            const DeviceBuffer to(*device, bytes, up, "to");
            const DeviceBuffer from(*device, bytes, down, "from");
            PinnedBuffer host(*device, 2 * bytes, "host");
            device->fill_async(from.data(), {}, bytes, down);
            device->synchronize(down.ref());
            device->copy_async(to.data(), host.data(), bytes, CopyDirection::host_to_device, up);
            if (both) {
                device->copy_async(host.data() + bytes, from.data(), bytes,
                                   CopyDirection::device_to_host, down);
            }
            device->synchronize(up.ref());
            device->synchronize(down.ref());
        }
        device->finish();
        return device;
    };
    const auto upload_us = [](const json& chart) {
        for (const json& event : events(chart, "X", 0)) {
            if (event.at("tid") == 1) {
                return event.at("dur").get<double>();
            }
        }
        return 0.0;
    };
    const auto alone = copies(false);
    const auto beside = copies(true);
    sim::DeviceProfile profile = profile_named("a100_pcie4").profile;
    const double fast = upload_us(chart_of({alone.get()}, profile));
    EXPECT_NEAR(fast, 6 + (1U << 24U) / 24.8e3, 1);
    EXPECT_GT(upload_us(chart_of({beside.get()}, profile)), 1.5 * fast);
    profile.host_memory_bytes_per_second = 24.8e9;
    const auto other = copies(false);
    EXPECT_NEAR(upload_us(chart_of({alone.get(), other.get()}, profile)), 2 * fast, 10);
}

TEST(Chart, IsTheSameEveryTime) {
    const Recorded a = recorded(5);
    const Recorded b = recorded(5);
    const sim::DeviceProfile profile = profile_named("gh200_c2c").profile;
    EXPECT_EQ(chart_of({a.device.get()}, profile), chart_of({b.device.get()}, profile));
}

}  // namespace
}  // namespace swaplab::harness
