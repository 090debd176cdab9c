#include "inspect/findings.hpp"

#include "swaplab/sim/units.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

namespace swaplab::harness {
namespace {

void collect_foreign(const optim::Value& value, std::set<std::string>& names) {
    if (const auto* opaque = value.get_if<optim::Opaque>()) {
        names.insert(opaque->class_name);
    } else if (const auto* list = value.get_if<optim::List>()) {
        for (const auto& item : list->items) {
            collect_foreign(item, names);
        }
    } else if (const auto* tuple = value.get_if<optim::Tuple>()) {
        for (const auto& item : tuple->items) {
            collect_foreign(item, names);
        }
    } else if (const auto* dict = value.get_if<optim::Dict>()) {
        for (const auto& [key, item] : dict->items) {
            collect_foreign(key, names);
            collect_foreign(item, names);
        }
    }
}

void note_unnamed_files(InspectReport& report) {
    std::vector<std::string> names;
    std::uint64_t bytes = 0;
    for (const FileReport& file : report.files) {
        if (file.path.ends_with(".distcp") && file.needed_bytes == 0 && file.bytes > 0) {
            names.push_back(file.path);
            bytes += file.bytes;
        }
    }
    if (!names.empty()) {
        report.notes.push_back(fmt::format("{} that .metadata does not name: {} ({})",
                                           sim::count_of(names.size(), "data file"),
                                           fmt::join(names, ", "), sim::format_bytes(bytes)));
    }
}

void note_foreign_objects(InspectReport& report) {
    std::set<std::string> classes;
    std::size_t count = 0;
    for (const ObjectReport& object : report.objects) {
        std::set<std::string> here =
            object.value ? foreign_classes(*object.value) : std::set<std::string>{};
        count += here.empty() ? 0U : 1U;
        classes.merge(here);
    }
    if (count > 0) {
        report.notes.push_back(fmt::format(
            "{} of {} hold classes that are not opened; nothing of them was executed: {}", count,
            sim::count_of(report.objects.size(), "object"), fmt::join(classes, ", ")));
    }
}

}  // namespace

std::set<std::string> foreign_classes(const optim::Value& value) {
    std::set<std::string> names;
    collect_foreign(value, names);
    return names;
}

void add_notes(InspectReport& report) {
    note_unnamed_files(report);
    note_foreign_objects(report);
    const bool has_moments =
        std::any_of(report.tensors.begin(), report.tensors.end(),
                    [](const TensorReport& tensor) { return tensor.role == Role::moment; });
    if (!has_moments) {
        report.notes.push_back("no optimizer state here");
    }
}

}  // namespace swaplab::harness
