#include "inspect/analyse.hpp"

#include "inspect/read_report.hpp"

#include "swaplab/sim/mutant.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

namespace swaplab::harness {
namespace {

InspectReport without_metadata(const std::string& directory,
                               const std::vector<DirectoryEntry>& entries) {
    InspectReport report;
    report.directory = directory;
    for (const DirectoryEntry& entry : entries) {
        if (!entry.is_directory) {
            report.files.push_back({entry.name, entry.bytes, 0});
        }
    }
    return report;
}

void judge(Checkpoint& checkpoint, InspectReport& report, const KnownShapes* against) {
    find_item_faults(report);
    find_tiling_faults(report);
    find_lost_shards(report, against);
    find_step_faults(checkpoint, report);
    add_notes(report);
    // By code; within a code as a person looks for them: places in a file in order, keys by name.
    std::stable_sort(
        report.findings.begin(), report.findings.end(), [](const Finding& a, const Finding& b) {
            const auto place = [](const Finding& f) {
                return std::tuple(f.code, f.file, f.file.empty() ? 0 : f.item->offset_bytes,
                                  f.file.empty() ? f.key : "");
            };
            return place(a) < place(b);
        });
}

}  // namespace

InspectReport inspect_directory(Storage& storage, const std::string& directory,
                                const KnownShapes* against, bool digest) {
    const auto entries = storage.list(directory);
    const auto is_data = [](const DirectoryEntry& e) { return e.name.ends_with(".distcp"); };
    Finding finding;
    if (!storage.exists(directory + "/.metadata") && !SWAPLAB_MUTANT("inspect.no_unfinished")) {
        if (std::none_of(entries.begin(), entries.end(), is_data)) {
            throw StorageError(
                fmt::format("{} holds no checkpoint: neither .metadata nor a .distcp file is in it",
                            directory),
                {{"operation", "inspect"}, {"file", directory}, {"reason", "no checkpoint"}});
        }
        InspectReport report = without_metadata(directory, entries);
        finding.code = FindingCode::unfinished_save;
        report.findings.push_back(finding);
        return report;
    }
    std::optional<Checkpoint> checkpoint;
    try {
        checkpoint.emplace(storage, directory);
    } catch (const CheckpointCorrupt& error) {
        InspectReport report = without_metadata(directory, entries);
        finding.code = FindingCode::bad_metadata;
        finding.detail = error.what();
        report.findings.push_back(finding);
        return report;
    }
    InspectReport report = read_report(*checkpoint);
    judge(*checkpoint, report, against);
    if (digest) {
        add_digests(*checkpoint, report);
    }
    return report;
}

KnownShapes shapes_of_directory(Storage& storage, const std::string& directory) {
    const Checkpoint checkpoint(storage, directory);
    std::vector<KnownShapes::Entry> shapes;
    for (const MetadataEntry& entry : checkpoint.metadata().entries) {
        if (entry.tensor() != nullptr && !state_key(entry.key)) {
            shapes.emplace_back(entry.key, entry.tensor()->global_shape);
        }
    }
    return {directory, std::move(shapes)};
}

}  // namespace swaplab::harness
