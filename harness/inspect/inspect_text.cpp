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

using Rows = std::vector<std::vector<std::string>>;
using sim::count_of;
using sim::format_bytes;
using sim::with_thousands;

/// "0-3, 5".
std::string ranges_of(const std::vector<int>& ranks) {
    std::vector<std::string> texts;
    for (std::size_t i = 0; i < ranks.size();) {
        std::size_t last = i;
        while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1) {
            ++last;
        }
        texts.push_back(last == i ? std::to_string(ranks[i])
                                  : fmt::format("{}-{}", ranks[i], ranks[last]));
        i = last + 1;
    }
    return fmt::format("{}", fmt::join(texts, ", "));
}

std::string header(const InspectReport& report, const Look& look) {
    std::size_t files = 0;
    std::uint64_t bytes = 0;
    for (const FileReport& file : report.files) {
        files += file.exists ? 1 : 0;
        bytes += file.bytes;
    }
    const std::string ranks =
        report.ranks.empty()
            ? ""
            : fmt::format(", rank{} {} (from file names)", report.ranks.size() == 1 ? "" : "s",
                          ranges_of(report.ranks));
    const std::size_t keys = report.tensors.size() + report.objects.size();
    const std::string has_keys = keys == 0 ? "" : ", " + count_of(keys, "key");
    return fmt::format("{}   DCP{}, {}, {}{}\n", bold(report.directory, look), ranks,
                       count_of(files, "file"), format_bytes(bytes), has_keys);
}

/// One line of the summary: how many tensors of a role, their elements and dtypes.
std::vector<std::string> role_row(const InspectReport& report, Role role, std::size_t& count) {
    std::int64_t elements = 0;
    std::vector<std::string> dtypes;
    std::vector<std::string> moments;
    for (const TensorReport& tensor : report.tensors) {
        if (tensor.role != role) {
            continue;
        }
        ++count;
        elements += optim::numel(tensor.shape);
        const std::string dtype(short_name_of(tensor.dtype));
        if (std::find(dtypes.begin(), dtypes.end(), dtype) == dtypes.end()) {
            dtypes.push_back(dtype);
        }
        if (role == Role::moment &&
            std::find(moments.begin(), moments.end(), tensor.moment) == moments.end()) {
            moments.push_back(tensor.moment);
        }
    }
    std::sort(moments.begin(), moments.end(), [](const auto& a, const auto& b) {
        return a.size() != b.size() ? a.size() < b.size() : a < b;
    });
    return {count_of(static_cast<std::uint64_t>(elements), "element"),
            fmt::format("{}", fmt::join(dtypes, ", ")),
            fmt::format("{}", fmt::join(moments, ", "))};
}

/// "max_exp_avg_sq is None (3)".
std::string none_leaves(const InspectReport& report) {
    std::map<std::string, int> counts;
    for (const ObjectReport& object : report.objects) {
        const std::size_t dot = object.key.rfind('.');
        const std::string leaf = object.key.substr(dot == std::string::npos ? 0 : dot + 1);
        if (object.value && object.value->is_none() && leaf.ends_with("exp_avg_sq")) {
            ++counts[leaf];
        }
    }
    std::vector<std::string> texts;
    for (const auto& [leaf, count] : counts) {
        texts.push_back(fmt::format("{} is None ({})", leaf, count));
    }
    return fmt::format("{}", fmt::join(texts, ", "));
}

std::string hyper_parameter(const std::string& name, const optim::Value& value) {
    if (const auto* flag = value.get_if<bool>()) {
        return name + (*flag ? " on" : " off");
    }
    if (const auto* tuple = value.get_if<optim::Tuple>()) {
        std::vector<std::string> items;
        std::transform(tuple->items.begin(), tuple->items.end(), std::back_inserter(items),
                       optim::repr);
        return fmt::format("{} {}", name, fmt::join(items, " "));
    }
    return name + " " + optim::repr(value);
}

std::string group_text(const GroupReport& group) {
    std::vector<std::string> texts;
    for (const char* name : {"lr", "betas", "eps", "weight_decay", "amsgrad"}) {
        const auto found = std::find_if(group.values.begin(), group.values.end(),
                                        [&](const auto& entry) { return entry.first == name; });
        if (found != group.values.end()) {
            texts.push_back(hyper_parameter(name, found->second));
        }
    }
    return fmt::format("{}", fmt::join(texts, ", "));
}

/// One text when all groups are alike, else one per group.
std::vector<std::string> group_texts(const InspectReport& report, const Look& look) {
    std::set<std::string> distinct;
    std::vector<std::string> texts;
    for (const GroupReport& group : report.groups) {
        distinct.insert(group_text(group));
        texts.push_back(group.name + ": " + group_text(group));
    }
    if (distinct.size() == 1) {
        return {*distinct.begin()};
    }
    if (!look.all && texts.size() > rows_shown) {
        const std::size_t more = texts.size() - rows_shown;
        texts.resize(rows_shown);
        texts.push_back(fmt::format("... and {} more (--all)", with_thousands(more)));
    }
    return texts;
}

std::string steps_text(const InspectReport& report) {
    const auto [least, most] = std::minmax_element(report.steps.begin(), report.steps.end());
    return *least == *most ? fmt::format("all {}", *least) : fmt::format("{} to {}", *least, *most);
}

std::string summary(const InspectReport& report, const Look& look) {
    Rows names;
    Rows details;
    for (const auto& [name, role] :
         {std::pair{"parameters", Role::parameter}, std::pair{"moments", Role::moment},
          std::pair{"tensors", Role::tensor}}) {
        std::size_t count = 0;
        auto row = role_row(report, role, count);
        if (count == 0) {
            continue;
        }
        const std::string none = role == Role::moment ? none_leaves(report) : "";
        row.back() += none.empty() ? "" : "; " + none;
        names.push_back({name, with_thousands(count)});
        details.push_back(std::move(row));
    }
    std::vector<std::string> texts;
    const std::string block = aligned(details, "");
    for (std::size_t begin = 0; begin < block.size();) {
        const std::size_t end = block.find('\n', begin);
        texts.push_back(block.substr(begin, end - begin));
        begin = end + 1;
    }
    if (!report.steps.empty()) {
        names.push_back({"steps", with_thousands(report.steps.size())});
        texts.push_back(steps_text(report));
    }
    const auto groups = group_texts(report, look);
    for (std::size_t i = 0; i < groups.size() && !report.groups.empty(); ++i) {
        names.push_back(
            {i == 0 ? "groups" : "", i == 0 ? with_thousands(report.groups.size()) : ""});
        texts.push_back(groups[i]);
    }
    for (std::size_t i = 0; i < names.size(); ++i) {
        names[i].push_back(texts[i]);
    }
    return aligned(names, "  ");
}

/// What was looked at and found right, and what was not looked at.
std::string ok_text(const InspectReport& report) {
    std::size_t chunks = 0;
    std::size_t moments = 0;
    for (const TensorReport& tensor : report.tensors) {
        chunks += tensor.chunks.size();
        moments += tensor.role == Role::moment ? 1 : 0;
    }
    std::vector<std::string> checked;
    if (moments > 0) {
        checked.emplace_back("every moment has its parameter's shape");
    }
    if (!report.tensors.empty()) {
        checked.push_back(fmt::format("{} tiled once by {}",
                                      count_of(report.tensors.size(), "tensor"),
                                      count_of(chunks, "chunk")));
    }
    checked.push_back(count_of(report.items - report.objects_unread, "item matches its header",
                               "items match their headers"));
    if (!report.steps.empty()) {
        const auto [least, most] = std::minmax_element(report.steps.begin(), report.steps.end());
        checked.emplace_back(*least == *most ? "steps agree" : "every step is possible");
    }
    const std::string unread = report.objects_unread == 0
                                   ? ""
                                   : count_of(report.objects_unread, "object") + " over 16 MiB; ";
    return fmt::format("ok    {}\n", fmt::join(checked, "; ")) +
           fmt::format(
               "      not checked: {}payload bytes (no checksum file in this directory; "
               "--digest prints SHA-256 per tensor)\n",
               unread);
}

/// {"a": [dims], "b": [dims]}: the file that would decide.
std::string example_of_shapes(const InspectReport& report) {
    std::vector<std::string> names;
    for (const Unjudged& unjudged : report.unjudged) {
        const std::string name = fmt::format("\"{}\": [dims]", unjudged.fqn);
        if (std::find(names.begin(), names.end(), name) == names.end()) {
            names.push_back(name);
        }
    }
    constexpr std::size_t enough = 3;
    const bool more = names.size() > enough;
    names.resize(std::min(names.size(), enough));
    return fmt::format("{{{}{}}}", fmt::join(names, ", "), more ? ", ..." : "");
}

std::string cannot_tell(const InspectReport& report) {
    const Unjudged& first = report.unjudged.front();
    const std::size_t count = report.unjudged.size();
    return fmt::format(
               "cannot tell  whether {} complete: {} not in this directory (first: {}, "
               "saved {})\n",
               count_of(count, "moment is", "moments are"),
               count == 1 ? "its parameter is" : "their parameters are", first.key,
               optim::to_string(first.saved)) +
           fmt::format(
               "  do     swaplab inspect {} --against MODEL_DIR          # the checkpoint "
               "that holds the parameters\n",
               report.directory) +
           fmt::format("         swaplab inspect {} --against shapes.json        # {}\n",
                       report.directory, example_of_shapes(report));
}

std::string all_keys(const InspectReport& report, const Look& look) {
    Rows rows{{"key", "kind", "dtype", "shape", "chunk", "file, item"}};
    const auto place = [](const std::optional<StoredItem>& item) {
        return item ? fmt::format("{} at {}, {}", item->relative_path,
                                  with_thousands(item->offset_bytes),
                                  format_bytes(item->length_bytes))
                    : "no item";
    };
    for (const TensorReport& tensor : report.tensors) {
        for (const ChunkReport& chunk : tensor.chunks) {
            rows.push_back({tensor.key, std::string(name_of(tensor.role)),
                            std::string(short_name_of(tensor.dtype)),
                            optim::to_string(tensor.shape), optim::to_string(chunk.chunk.box),
                            place(chunk.chunk.stored)});
        }
    }
    for (const ObjectReport& object : report.objects) {
        rows.push_back({object.key, "object",
                        object.value ? std::string(optim::kind_of(*object.value)) : "", "", "",
                        place(object.stored)});
    }
    return aligned_keys(std::move(rows), "  ", look);
}

std::string all_files(const InspectReport& report, const Look& look) {
    Rows rows{{"file", "bytes", "needed"}};
    for (const FileReport& file : report.files) {
        rows.push_back({file.path,
                        file.is_special ? "no file"
                        : file.exists   ? with_thousands(file.bytes)
                                        : "missing",
                        file.path == ".metadata" ? "" : with_thousands(file.needed_bytes)});
    }
    return aligned_keys(std::move(rows), "  ", look);
}

std::string digests(const InspectReport& report) {
    std::string text;
    for (const TensorReport& tensor : report.tensors) {
        if (!tensor.sha256.empty()) {
            text += fmt::format("sha256  {}  {} {} {}\n", tensor.sha256, tensor.key,
                                short_name_of(tensor.dtype), optim::to_string(tensor.shape));
        }
    }
    return text;
}

}  // namespace

std::string to_text(const InspectReport& report, const Look& look) {
    std::string text = header(report, look);
    if (report.findings.empty() && report.unjudged.empty()) {
        text += summary(report, look) + ok_text(report);
    }
    text += findings_text(report, look);
    if (!report.unjudged.empty()) {
        text += cannot_tell(report);
    }
    for (const std::string& note : report.notes) {
        text += "note  " + note + "\n";
    }
    text += digests(report) + (look.all ? all_keys(report, look) + all_files(report, look) : "");
    return dressed(text, look);
}

}  // namespace swaplab::harness
