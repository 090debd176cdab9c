#include "inspect/finding_blocks.hpp"
#include "inspect/table.hpp"
#include "inspect/text.hpp"

#include "swaplab/sim/units.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

namespace swaplab::harness {
namespace {

using sim::format_bytes;
using sim::with_thousands;

/// PyTorch reads file by file, in the order in which keys first name them, and writes into live
/// tensors as it goes: how many have changed when it meets the first item that is not there.
std::pair<std::size_t, std::size_t> overwritten_before_failure(const InspectReport& report) {
    std::vector<std::string> order;
    std::map<std::string, std::vector<std::pair<std::string, bool>>> by_file;
    const auto add = [&](const std::string& key, const std::optional<StoredItem>& item,
                         std::uint64_t there_bytes) {
        if (item) {
            auto& items = by_file[item->relative_path];
            if (items.empty()) {
                order.push_back(item->relative_path);
            }
            items.emplace_back(key, there_bytes == item->length_bytes);
        }
    };
    std::set<std::string> tensors;
    for (const TensorReport& tensor : report.tensors) {
        tensors.insert(tensor.key);
        for (const ChunkReport& chunk : tensor.chunks) {
            add(tensor.key, chunk.chunk.stored, chunk.there_bytes);
        }
    }
    for (const ObjectReport& object : report.objects) {
        add(object.key, object.stored, object.there_bytes);
    }
    std::set<std::string> changed;
    for (const std::string& path : order) {
        for (const auto& [key, there] : by_file[path]) {
            if (!there) {
                return {changed.size(), tensors.size()};
            }
            if (tensors.contains(key)) {
                changed.insert(key);
            }
        }
    }
    return {changed.size(), tensors.size()};
}

std::string file_rows(const Findings& findings, const Look& look) {
    Rows rows;
    for (const Finding* f : findings) {
        rows.push_back({f->key, f->chunk ? optim::to_string(*f->chunk) : "object",
                        fmt::format("{} to {}", with_thousands(f->item->offset_bytes),
                                    with_thousands(f->item->offset_bytes + f->item->length_bytes)),
                        fmt::format("{} of {}", with_thousands(f->there_bytes),
                                    with_thousands(f->item->length_bytes)),
                        f->chunk ? share(f->elements_lost, f->elements, "") : "all"});
    }
    return rows_text(std::move(rows), {"key", "chunk", "item bytes", "there", "elements lost"},
                     look);
}

std::string one_file(const InspectReport& report, const Findings& findings, const Look& look) {
    const std::string& path = findings.front()->file;
    const auto file = std::find_if(report.files.begin(), report.files.end(),
                                   [&](const FileReport& f) { return f.path == path; });
    std::int64_t elements = 0;
    for (const TensorReport& tensor : report.tensors) {
        elements += optim::numel(tensor.shape);
    }
    const auto [changed, tensors] = overwritten_before_failure(report);
    return fmt::format("finding  {}: {} {}, .metadata needs {}; {} of {} keys, {} cannot be read\n",
                       name_of(findings.front()->code), path,
                       file->exists       ? "has " + format_bytes(file->bytes)
                       : file->is_special ? "is a pipe, socket or device, not a regular file"
                                          : "is not there",
                       format_bytes(file->needed_bytes), keys_of(findings).size(),
                       report.tensors.size() + report.objects.size(),
                       share(sums_of(findings).lost, elements, "elements")) +
           file_rows(findings, look) +
           line("means", fmt::format("PyTorch notices only after it has overwritten {} of {} live "
                                     "tensors, wholly or in part",
                                     changed, tensors)) +
           line("do",
                "copy the file again from its source and compare sizes; else an older "
                "checkpoint");
}

}  // namespace

std::string file_faults_text(const InspectReport& report, const Findings& findings,
                             const Look& look) {
    std::map<std::string, Findings> by_file;
    for (const Finding* finding : findings) {
        by_file[finding->file].push_back(finding);
    }
    std::string text;
    for (const auto& entry : by_file) {
        text += one_file(report, entry.second, look);
    }
    return text;
}

}  // namespace swaplab::harness
