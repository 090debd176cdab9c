#include "cli/trace_writer.hpp"

#include "files/whole_file.hpp"
#include "profile/device_profiles.hpp"
#include "replay/device_chart.hpp"
#include "replay/trace_file.hpp"

#include "swaplab/sim/mutant.hpp"
#include "swaplab/sim/units.hpp"

#include <fmt/format.h>

#include <map>

namespace swaplab::harness::cli {

TraceWriter::TraceWriter(const std::string& directory)
    : storage_(make_posix_storage()), directory_(directory) {
    storage_->make_directory(directory);
    if (!storage_->list(directory).empty() && !SWAPLAB_MUTANT("run.trace_into_full")) {
        throw StorageError(
            fmt::format("cannot write traces to {}: it is not empty; name a new directory",
                        directory),
            {{"operation", "write"}, {"file", directory}, {"reason", "not empty"}});
    }
}

void TraceWriter::write(const scenario::Run& run,
                        const std::vector<std::vector<scenario::RankTrace>>& traces) {
    for (std::size_t pass = 0; pass < traces.size(); ++pass) {
        std::map<std::size_t, std::vector<scenario::RankTrace>> processes;
        for (const scenario::RankTrace& trace : traces[pass]) {
            processes[trace.process].push_back(trace);
        }
        const std::string nth = traces.size() > 1 ? fmt::format(".pass{}", pass + 1) : "";
        for (const auto& [process, ranks] : processes) {
            write_process(
                fmt::format("{}/{}{}.process{}", directory_, file_stem(run.name), nth, process),
                ranks);
        }
    }
}

void TraceWriter::write_process(const std::string& stem,
                                const std::vector<scenario::RankTrace>& ranks) {
    std::vector<sim::DeviceTrace> traces;
    for (const scenario::RankTrace& rank : ranks) {
        write_new(*storage_, fmt::format("{}.rank{}.trace", stem, rank.rank), rank.file);
        traces.push_back(sim::decode_trace(rank.file));
        ++traces_;
    }
    std::vector<std::unique_ptr<sim::SimulatedDevice>> devices;
    std::vector<const sim::SimulatedDevice*> pointers;
    for (const sim::DeviceTrace& trace : traces) {
        devices.push_back(sim::replay(trace));
        pointers.push_back(devices.back().get());
    }
    const sim::DeviceProfile profile = profile_named(ranks.front().profile).profile;
    write_new(*storage_, stem + ".chart.json",
              chart_json(pointers, virtual_times(pointers, profile), profile));
    ++charts_;
}

std::string TraceWriter::summary() const {
    return fmt::format("{} and {} in {}", sim::count_of(traces_, "trace"),
                       sim::count_of(charts_, "chart"), directory_);
}

}  // namespace swaplab::harness::cli
