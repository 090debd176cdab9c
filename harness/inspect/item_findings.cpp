#include "inspect/findings.hpp"

#include "swaplab/sim/mutant.hpp"
#include "swaplab/sim/units.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace swaplab::harness {
namespace {

const FileReport* file_of(const InspectReport& report, const std::string& path) {
    const auto found = std::find_if(report.files.begin(), report.files.end(),
                                    [&](const FileReport& f) { return f.path == path; });
    return found == report.files.end() ? nullptr : &*found;
}

/// A finding when the item does not lie wholly in its file.
std::optional<Finding> file_fault(const InspectReport& report, const std::string& key,
                                  const StoredItem& item, std::uint64_t there_bytes) {
    if (there_bytes == item.length_bytes || SWAPLAB_MUTANT("inspect.no_file_check")) {
        return std::nullopt;
    }
    const FileReport* file = file_of(report, item.relative_path);
    Finding finding;
    finding.code =
        file != nullptr && file->exists ? FindingCode::truncated_file : FindingCode::missing_file;
    finding.key = key;
    finding.file = item.relative_path;
    finding.item = item;
    finding.there_bytes = there_bytes;
    return finding;
}

std::uint64_t payload_bytes(const Box& box, sim::DType dtype) {
    return static_cast<std::uint64_t>(optim::numel(box.sizes)) * size_of(dtype);
}

/// What is wrong with the item of one chunk, apart from the shape that it holds.
std::optional<Finding> item_fault(const InspectReport& report, const TensorReport& tensor,
                                  const ChunkReport& chunk) {
    Finding finding;
    if (!chunk.chunk.stored) {
        finding.code = FindingCode::bad_metadata;
        finding.detail = "names no item for this chunk";
    } else if (auto fault =
                   file_fault(report, tensor.key, *chunk.chunk.stored, chunk.there_bytes)) {
        finding = *fault;
    } else if (chunk.chunk.stored->length_bytes < payload_bytes(chunk.chunk.box, tensor.dtype)) {
        finding.code = FindingCode::short_item;
        finding.detail =
            fmt::format("item of {}, the chunk needs {} of payload",
                        sim::format_bytes(chunk.chunk.stored->length_bytes),
                        sim::format_bytes(payload_bytes(chunk.chunk.box, tensor.dtype)));
    } else if (!chunk.header) {
        finding.code = FindingCode::unreadable_item;
        finding.detail = chunk.unreadable;
    } else if (chunk.header->dtype != tensor.dtype) {
        finding.code = FindingCode::bad_metadata;
        finding.detail = fmt::format("says {}, the item holds {}", short_name_of(tensor.dtype),
                                     short_name_of(chunk.header->dtype));
    } else if (chunk.header->stored_shape == chunk.chunk.box.sizes && !chunk.sound(tensor.dtype)) {
        finding.code = FindingCode::short_item;
        finding.detail = fmt::format(
            "record of {}, the chunk needs {}", sim::format_bytes(chunk.header->payload_bytes),
            sim::format_bytes(payload_bytes(chunk.chunk.box, tensor.dtype)));
    } else {
        return std::nullopt;
    }
    finding.item = chunk.chunk.stored;
    return finding;
}

/// Chunks whose items are whole but hold another shape. When the shapes found are the shapes
/// missed, addresses were exchanged; otherwise .metadata is wrong about them.
std::vector<Finding> shape_faults(const TensorReport& tensor) {
    std::vector<Finding> findings;
    std::vector<Shape> named;
    std::vector<Shape> held;
    for (const ChunkReport& chunk : tensor.chunks) {
        if (!chunk.header || chunk.header->dtype != tensor.dtype ||
            chunk.header->stored_shape == chunk.chunk.box.sizes ||
            SWAPLAB_MUTANT("inspect.no_stored_shape")) {
            continue;
        }
        Finding finding;
        finding.chunk = chunk.chunk.box;
        finding.item = chunk.chunk.stored;
        finding.header = chunk.header;
        findings.push_back(finding);
        named.push_back(chunk.chunk.box.sizes);
        held.push_back(chunk.header->stored_shape);
    }
    std::sort(named.begin(), named.end());
    std::sort(held.begin(), held.end());
    for (Finding& finding : findings) {
        finding.code = named == held ? FindingCode::exchanged_chunks : FindingCode::bad_metadata;
        finding.detail =
            fmt::format("says {}, the item holds {}", optim::to_string(finding.chunk->sizes),
                        optim::to_string(finding.header->stored_shape));
    }
    return findings;
}

void add(InspectReport& report, const TensorReport& tensor, const Box& box, Finding finding) {
    finding.key = tensor.key;
    finding.saved = tensor.shape;
    finding.chunk = box;
    finding.elements = optim::numel(tensor.shape);
    finding.elements_lost = optim::numel(box.sizes);
    report.findings.push_back(std::move(finding));
}

/// The class that keeps a value of a parameter group from being read, or nothing.
std::string foreign_hyper_parameter(const ObjectReport& object) {
    const bool in_group = object.key.starts_with("param_groups.") ||
                          object.key.find(".param_groups.") != std::string::npos;
    if (!in_group || !object.value || SWAPLAB_MUTANT("inspect.foreign_in_group")) {
        return "";
    }
    const auto classes = foreign_classes(*object.value);
    return classes.empty() ? "" : *classes.begin();
}

void check_object(InspectReport& report, const ObjectReport& object) {
    Finding finding;
    finding.key = object.key;
    finding.item = object.stored;
    if (!object.stored) {
        finding.code = FindingCode::bad_metadata;
        finding.detail = "names no item for this key";
    } else if (auto fault = file_fault(report, object.key, *object.stored, object.there_bytes)) {
        finding = *fault;
    } else if (!object.unreadable.empty()) {
        finding.code = FindingCode::unreadable_item;
        finding.detail = object.unreadable;
    } else if (const std::string foreign = foreign_hyper_parameter(object); !foreign.empty()) {
        finding.code = FindingCode::unreadable_item;
        finding.detail = foreign + " is not opened; nothing of it was executed";
    } else {
        return;
    }
    report.findings.push_back(std::move(finding));
}

}  // namespace

void find_item_faults(InspectReport& report) {
    for (const TensorReport& tensor : report.tensors) {
        for (const ChunkReport& chunk : tensor.chunks) {
            if (auto fault = item_fault(report, tensor, chunk)) {
                add(report, tensor, chunk.chunk.box, *fault);
            }
        }
        for (Finding& finding : shape_faults(tensor)) {
            const Box box = *finding.chunk;
            add(report, tensor, box, std::move(finding));
        }
    }
    for (const ObjectReport& object : report.objects) {
        check_object(report, object);
    }
}

}  // namespace swaplab::harness
