#include "replay/device_chart.hpp"

#include "swaplab/sim/mutant.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <string_view>

namespace swaplab::harness {
namespace {

using Json = nlohmann::ordered_json;
using sim::Engine;
using sim::OperationTime;
using sim::TraceEvent;

constexpr double picoseconds_per_microsecond = 1e6;

enum class Row : std::uint8_t { copy_in = 1, copy_out, compute, host };
constexpr std::array<std::string_view, 5> row_names{"", "copy in", "copy out", "compute", "host"};

double microseconds(std::uint64_t picoseconds) {
    return static_cast<double>(picoseconds) / picoseconds_per_microsecond;
}

Row row_of(Engine engine) {
    switch (engine) {
        case Engine::upload:
            return Row::copy_in;
        case Engine::download:
            return Row::copy_out;
        case Engine::compute:
            return Row::compute;
        case Engine::none:
            break;
    }
    return Row::host;
}

/// What an operation does to a sum of bytes: +1, -1, or nothing.
struct Change {
    std::string_view memory;  ///< "device", "pinned"; empty: none
    int sign = 0;
};

Change change_of(const TraceEvent& event) {
    const std::string_view operation = event.operation;
    return operation == "allocate"          ? Change{"device", 1}
           : operation == "free"            ? Change{"device", -1}
           : operation == "allocate pinned" ? Change{"pinned", 1}
           : operation == "free pinned"     ? Change{"pinned", -1}
                                            : Change{};
}

/// Of what orders streams alone, nothing is drawn.
bool is_drawn(const TraceEvent& event) {
    return event.operation != "record" && event.operation != "wait" &&
           change_of(event).memory != "device";
}

class RankChart {
  public:
    RankChart(std::size_t process, const sim::SimulatedDevice& device,
              const std::vector<OperationTime>& times, Json& events)
        : process_(process),
          trace_(device.trace()),
          graph_(device.timed_graph()),
          times_(times),
          events_(events) {
        name("process_name", 0, "rank " + std::to_string(device.rank()));
        for (std::size_t row = 1; row < row_names.size(); ++row) {
            name("thread_name", row, std::string(row_names[row]));
        }
    }

    void draw() {
        for (const std::size_t id : in_time()) {
            if (is_drawn(trace_[id])) {
                draw(id);
            }
            count(id);
        }
    }

  private:
    [[nodiscard]] Json event(std::string_view name, std::string_view phase) const {
        return {{"name", name}, {"ph", phase}, {"pid", process_}};
    }

    void name(std::string_view what, std::size_t row, const std::string& text) {
        Json json = event(what, "M");
        json["tid"] = row;
        json["args"] = {{"name", text}};
        events_.push_back(std::move(json));
    }

    /// Operations as they begin; a legal order, because no edge leads to a lower number.
    [[nodiscard]] std::vector<std::size_t> in_time() const {
        std::vector<std::size_t> ids(trace_.size());
        std::iota(ids.begin(), ids.end(), std::size_t{0});
        if (!SWAPLAB_MUTANT("chart.issue_order")) {
            std::stable_sort(ids.begin(), ids.end(), [&](std::size_t a, std::size_t b) {
                return times_[a].begin_picoseconds < times_[b].begin_picoseconds;
            });
        }
        return ids;
    }

    void draw(std::size_t id) {
        const TraceEvent& operation = trace_[id];
        const Engine engine = graph_.operations[id].engine;
        const OperationTime& time = times_[id];
        Json json = event(operation.operation, engine == Engine::none ? "i" : "X");
        json["tid"] = static_cast<int>(row_of(engine));
        json["ts"] = microseconds(time.begin_picoseconds);
        if (engine == Engine::none) {
            json["s"] = "t";
        } else {
            json["dur"] = microseconds(time.end_picoseconds - time.begin_picoseconds);
        }
        json["args"] = {{"stream", operation.stream},
                        {"tag", operation.tag},
                        {"offset_bytes", operation.offset_bytes},
                        {"bytes", operation.bytes},
                        {"operation", id},
                        {"begin_ps", time.begin_picoseconds},
                        {"end_ps", time.end_picoseconds}};
        events_.push_back(std::move(json));
    }

    void count(std::size_t id) {
        const TraceEvent& operation = trace_[id];
        const Change change = change_of(operation);
        if (change.sign == 0) {
            return;
        }
        const std::string all = std::string(change.memory) + " bytes";
        for (const std::string& counter : {all, all + ": " + operation.tag}) {
            std::uint64_t& sum = sums_[counter];
            sum = change.sign > 0 ? sum + operation.bytes : sum - operation.bytes;
            Json json = event(counter, "C");
            json["ts"] = microseconds(times_[id].begin_picoseconds);
            json["args"] = {{"bytes", sum}};
            events_.push_back(std::move(json));
        }
    }

    std::size_t process_;
    const std::vector<TraceEvent>& trace_;
    sim::TimedGraph graph_;
    const std::vector<OperationTime>& times_;
    Json& events_;
    std::map<std::string, std::uint64_t> sums_;  ///< by counter
};

}  // namespace

RankTimes virtual_times(RankDevices devices, const sim::DeviceProfile& profile) {
    std::vector<sim::TimedGraph> graphs;
    graphs.reserve(devices.size());
    for (const sim::SimulatedDevice* device : devices) {
        graphs.push_back(device->timed_graph());
    }
    return sim::timeline(graphs, profile);
}

std::uint64_t end_picoseconds(const std::vector<OperationTime>& times) {
    std::uint64_t last = 0;
    for (const OperationTime& time : times) {
        last = std::max(last, time.end_picoseconds);
    }
    return last;
}

std::string chart_json(RankDevices devices, const RankTimes& times,
                       const sim::DeviceProfile& profile) {
    Json events = Json::array();
    for (std::size_t rank = 0; rank < devices.size(); ++rank) {
        RankChart(rank, *devices[rank], times[rank], events).draw();
    }
    const Json chart = {{"traceEvents", std::move(events)},
                        {"displayTimeUnit", "ns"},
                        {"otherData", {{"profile", profile.name}}}};
    return chart.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace swaplab::harness
