#include "replay/replay_command.hpp"

#include "files/whole_file.hpp"
#include "profile/device_profiles.hpp"
#include "replay/device_chart.hpp"
#include "replay/trace_file.hpp"

#include "swaplab/sim/error.hpp"
#include "swaplab/sim/mutant.hpp"
#include "swaplab/sim/units.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <ostream>
#include <utility>

namespace swaplab::harness {
namespace {

using Json = nlohmann::ordered_json;

struct Replayed {
    std::string path;
    sim::DeviceTrace trace;
    std::unique_ptr<sim::SimulatedDevice> device;  ///< null where `difference` says why
    std::string difference;                        ///< from the recorded run, or empty
    std::uint64_t picoseconds = 0;

    [[nodiscard]] bool good() const { return difference.empty() && device->findings().empty(); }
    [[nodiscard]] std::uint64_t observed_bytes() const {
        return device->ledger().peak(sim::MemoryKind::device, sim::Size::requested,
                                     sim::Lifetime::occupied);
    }
};

/// The device keeps call sites that point into the trace, which must stay where it is.
void run_again(Replayed& one) {
    require_memory(one.trace);
    try {
        one.device = sim::replay(one.trace);
    } catch (const sim::Error& error) {
        one.difference = error.message();
    }
    if (one.device != nullptr && one.device->execution_digest() != one.trace.digest &&
        !SWAPLAB_MUTANT("replay.any_digest")) {
        one.difference = fmt::format("digest {:016x}, recorded was {:016x}",
                                     one.device->execution_digest(), one.trace.digest);
    }
}

void time(std::vector<Replayed>& all, const ReplayOptions& options, Storage& storage) {
    const sim::DeviceProfile profile = find_profile(storage, options.profile).profile;
    std::vector<const sim::SimulatedDevice*> devices;
    for (const Replayed& one : all) {
        if (one.device != nullptr) {
            devices.push_back(one.device.get());
        }
    }
    const RankTimes times = virtual_times(devices, profile);
    std::size_t place = 0;
    for (Replayed& one : all) {
        if (one.device != nullptr) {
            one.picoseconds = end_picoseconds(times[place++]);
        }
    }
    if (!options.chart.empty()) {
        write_new(storage, options.chart, chart_json(devices, times, profile));
    }
}

std::string text_of(const Replayed& one, const std::string& profile) {
    const sim::SimulatedDeviceOptions& recorded = one.trace.options;
    std::string out =
        fmt::format("trace    {}   rank {}, {} (seed {}), {}, capacity {}, {}, {}\n", one.path,
                    recorded.rank, sim::name_of(recorded.schedule), recorded.seed,
                    sim::name_of(recorded.allocation), sim::format_bytes(recorded.capacity_bytes),
                    sim::count_of(one.trace.program.calls.size(), "call"),
                    sim::count_of(recorded.record.size(), "operation"));
    if (!one.difference.empty()) {
        out += fmt::format("differs  {}\n", one.difference);
    }
    if (one.device == nullptr) {
        return out;
    }
    for (const sim::Finding& finding : one.device->findings()) {
        out += fmt::format("finding  {}\n", finding.text);
    }
    out += fmt::format("peak     observed {} B, worst over all schedules {} B\n",
                       sim::with_thousands(one.observed_bytes()),
                       sim::with_thousands(one.device->worst_peak().bytes));
    out += fmt::format("time     {:.6f} us (virtual, {})\n",
                       static_cast<double>(one.picoseconds) * 1e-6, profile);
    return out + fmt::format("digest   {:016x}\n", one.device->execution_digest());
}

Json json_of(const Replayed& one) {
    Json json = {{"trace", one.path},
                 {"rank", one.trace.options.rank},
                 {"calls", one.trace.program.calls.size()},
                 {"operations", one.trace.options.record.size()},
                 {"difference", one.difference.empty() ? Json() : Json(one.difference)}};
    if (one.device == nullptr) {
        return json;
    }
    json["findings"] = Json::array();
    for (const sim::Finding& finding : one.device->findings()) {
        json["findings"].push_back({{"kind", sim::name_of(finding.kind)}, {"text", finding.text}});
    }
    json["observed_peak_bytes"] = one.observed_bytes();
    json["worst_peak_bytes"] = one.device->worst_peak().bytes;
    json["virtual_picoseconds"] = one.picoseconds;
    json["digest"] = fmt::format("{:016x}", one.device->execution_digest());
    return json;
}

/// Writes the smallest trace with the first finding. Returns what there is to say of it.
std::string shrink_into(const Replayed& one, const std::string& path, Storage& storage) {
    if (one.device == nullptr || one.device->findings().empty()) {
        throw sim::ArgumentError(
            fmt::format("{} has no finding: nothing to shrink", one.path),
            {{"operation", "shrink"}, {"file", one.path}, {"expected", "a finding"}});
    }
    const sim::Finding& finding = one.device->findings().front();
    const sim::DeviceTrace small = sim::shrink(one.trace, finding);
    write_new(storage, path, sim::encode(small));
    return fmt::format(
        "shrunk   {} to {}, {} to {}, schedule {}: {}\nkeeps    {}\n",
        one.trace.program.calls.size(), sim::count_of(small.program.calls.size(), "call"),
        one.trace.options.record.size(), sim::count_of(small.options.record.size(), "operation"),
        sim::name_of(small.options.schedule), path, finding.text);
}

}  // namespace

ExitCode replay_command(Storage& storage, const ReplayOptions& options, std::ostream& out) {
    if (!options.shrink.empty() && options.traces.size() != 1) {
        throw sim::ArgumentError(
            fmt::format("--shrink wants one TRACE; found {}", options.traces.size()),
            {{"operation", "shrink"}, {"found", std::to_string(options.traces.size())}});
    }
    if (!options.shrink.empty() && options.shrink == options.chart) {
        throw sim::ArgumentError(
            fmt::format("--shrink and --chart both write {}; name two files", options.shrink),
            {{"operation", "replay"}, {"file", options.shrink}});
    }
    std::vector<Replayed> all;
    all.reserve(options.traces.size());
    for (const std::string& path : options.traces) {
        all.push_back({path, read_trace(storage, path), nullptr, "", 0});
    }
    std::for_each(all.begin(), all.end(), run_again);
    time(all, options, storage);
    std::string shrunk;
    if (!options.shrink.empty()) {
        shrunk = shrink_into(all.front(), options.shrink, storage);
    }
    Json json = Json::array();
    std::size_t findings = 0;
    for (const Replayed& one : all) {
        findings += one.device != nullptr ? one.device->findings().size() : 0;
        if (options.json) {
            json.push_back(json_of(one));
        } else if (!options.quiet) {
            out << text_of(one, options.profile);
        }
    }
    const bool good =
        std::all_of(all.begin(), all.end(), [](const Replayed& one) { return one.good(); });
    const ExitCode code = good ? ExitCode::ok : ExitCode::failed;
    if (options.json) {
        const Json whole = {{"schema", "swaplab.replay/1"},
                            {"exit", static_cast<int>(code)},
                            {"profile", options.profile},
                            {"traces", std::move(json)}};
        out << whole.dump(-1, ' ', false, Json::error_handler_t::replace) << "\n";
    } else {
        out << shrunk
            << fmt::format("{}, {}\n", sim::count_of(all.size(), "trace"),
                           sim::count_of(findings, "finding"));
    }
    return code;
}

}  // namespace swaplab::harness
