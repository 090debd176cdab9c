#include "inspect/json.hpp"

#include "inspect/element.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>

namespace swaplab::harness {
namespace {

using Json = nlohmann::ordered_json;

/// The value of a key as JSON where JSON has it, else Python's repr.
Json to_json(const optim::Value& value) {
    if (value.is_none()) {
        return nullptr;
    }
    if (const auto* flag = value.get_if<bool>()) {
        return *flag;
    }
    if (const auto* integer = value.get_if<std::int64_t>()) {
        return *integer;
    }
    if (const auto* real = value.get_if<double>(); real != nullptr && std::isfinite(*real)) {
        return *real;
    }
    if (const auto* text = value.get_if<std::string>()) {
        return *text;
    }
    const auto* list = value.get_if<optim::List>();
    const auto* tuple = value.get_if<optim::Tuple>();
    if (list != nullptr || tuple != nullptr) {
        Json items = Json::array();
        for (const optim::Value& item : list != nullptr ? list->items : tuple->items) {
            items.push_back(to_json(item));
        }
        return items;
    }
    return optim::repr(value);
}

Json part_json(const RankPart& part) {
    Json json = {{"rank", part.rank}, {"offset", nullptr}, {"size", nullptr}};
    if (part.box) {
        json["offset"] = part.box->offsets;
        json["size"] = part.box->sizes;
    }
    return json;
}

Json parts_json(const std::vector<RankPart>& parts) {
    Json json = Json::array();
    std::transform(parts.begin(), parts.end(), std::back_inserter(json), part_json);
    return json;
}

void add_item(Json& json, const std::optional<StoredItem>& item) {
    json["file"] = item ? Json(item->relative_path) : Json();
    json["pos"] = item ? Json(item->offset_bytes) : Json();
    json["length"] = item ? Json(item->length_bytes) : Json();
}

Json tensor_json(const TensorReport& tensor) {
    Json chunks = Json::array();
    for (const ChunkReport& chunk : tensor.chunks) {
        Json json = {{"offset", chunk.chunk.box.offsets}, {"size", chunk.chunk.box.sizes}};
        add_item(json, chunk.chunk.stored);
        json["stored_shape"] = chunk.header ? Json(chunk.header->stored_shape) : Json();
        chunks.push_back(std::move(json));
    }
    Json json = {{"key", tensor.key},
                 {"kind", name_of(tensor.role)},
                 {"parameter", tensor.parameter.empty() ? Json() : Json(tensor.parameter)},
                 {"dtype", short_name_of(tensor.dtype)},
                 {"shape", tensor.shape},
                 {"chunks", std::move(chunks)}};
    if (!tensor.sha256.empty()) {
        json["sha256"] = tensor.sha256;
    }
    return json;
}

Json object_json(const ObjectReport& object) {
    Json json = {{"key", object.key}};
    add_item(json, object.stored);
    if (object.value) {
        json["type"] = optim::kind_of(*object.value);
        json["value"] = to_json(*object.value);
    }
    return json;
}

std::string_view advice(FindingCode code) {
    switch (code) {
        case FindingCode::lost_shards:
            return "resume from an older checkpoint or load_states = false";
        case FindingCode::exchanged_chunks:
            return "save the model again with torch 2.8";
        case FindingCode::impossible_step:
        case FindingCode::step_disagreement:
            return "resume from an older checkpoint";
        default:
            return "copy the files again from their source";
    }
}

Json finding_json(const Finding& finding) {
    Json json = {{"code", name_of(finding.code)}, {"key", finding.key}};
    if (finding.code == FindingCode::lost_shards) {
        json["parameter"] = finding.parameter;
        json["saved"] = finding.saved;
        json["parameter_shape"] = finding.parameter_shape;
        json["parameter_source"] =
            finding.parameter_source.empty() ? Json() : Json(finding.parameter_source);
        json["kept"] = parts_json(finding.kept);
        json["lost"] = finding.lost ? parts_json(*finding.lost) : Json();
    }
    if (finding.chunk) {
        json["offset"] = finding.chunk->offsets;
        json["size"] = finding.chunk->sizes;
    }
    if (finding.item) {
        add_item(json, finding.item);
        json["there"] = finding.there_bytes;
    }
    if (finding.header) {
        json["stored_shape"] = finding.header->stored_shape;
        json["stored_bytes"] = finding.header->payload_bytes;
    }
    if (!finding.detail.empty()) {
        json["detail"] = finding.detail;
    }
    json["elements_lost"] = finding.elements_lost;
    json["elements"] = finding.elements;
    json["do"] = advice(finding.code);
    return json;
}

Json totals_json(const InspectReport& report) {
    std::size_t files = 0;
    std::uint64_t bytes = 0;
    for (const FileReport& file : report.files) {
        files += file.exists ? 1 : 0;
        bytes += file.bytes;
    }
    std::size_t chunks = 0;
    for (const TensorReport& tensor : report.tensors) {
        chunks += tensor.chunks.size();
    }
    return {{"keys", report.tensors.size() + report.objects.size()},
            {"tensors", report.tensors.size()},
            {"objects", report.objects.size()},
            {"chunks", chunks},
            {"items", report.items},
            {"files", files},
            {"bytes", bytes},
            {"ranks", report.ranks}};
}

template <class Items, class Function>
Json array_of(const Items& items, Function function) {
    Json json = Json::array();
    for (const auto& item : items) {
        json.push_back(function(item));
    }
    return json;
}

}  // namespace

std::string to_json(const ShardTable& table) {
    Json placements = Json::array();
    for (const optim::Placement& placement : table.spec.placements) {
        placements.push_back(optim::to_string(placement));
    }
    Json ranks = Json::array();
    for (const ShardRow& row : table.rows) {
        ranks.push_back({{"rank", row.rank},
                         {"mesh", row.coordinate},
                         {"size", row.box.sizes},
                         {"offset", row.box.offsets}});
    }
    const Json all = {{"schema", "swaplab.shard/1"},
                      {"shape", table.spec.global_shape},
                      {"mesh", table.spec.mesh},
                      {"placements", placements},
                      {"ranks", ranks},
                      {"elements", table.coverage.elements},
                      {"covered", table.coverage.covered()}};
    return all.dump();
}

std::string to_json(const InspectReport& report) {
    const auto file = [](const FileReport& f) {
        return Json{{"file", f.path},
                    {"bytes", f.bytes},
                    {"needed", f.needed_bytes},
                    {"exists", f.exists},
                    {"special", f.is_special}};
    };
    const auto group = [](const GroupReport& g) {
        Json json = {{"name", g.name}};
        for (const auto& [name, value] : g.values) {
            json[name] = to_json(value);
        }
        return json;
    };
    const auto unjudged = [](const Unjudged& u) {
        return Json{{"key", u.key}, {"parameter", u.fqn}, {"saved", u.saved}};
    };
    const Json all = {{"schema", "swaplab.inspect/1"},
                      {"dir", report.directory},
                      {"exit", static_cast<int>(report.exit_code())},
                      {"totals", totals_json(report)},
                      {"files", array_of(report.files, file)},
                      {"tensors", array_of(report.tensors, tensor_json)},
                      {"objects", array_of(report.objects, object_json)},
                      {"groups", array_of(report.groups, group)},
                      {"findings", array_of(report.findings, finding_json)},
                      {"cannot_tell", array_of(report.unjudged, unjudged)},
                      {"notes", report.notes}};
    return all.dump(-1, ' ', true, Json::error_handler_t::replace);
}

std::string to_json(const DiffReport& report) {
    const auto difference = [](const Difference& d) {
        Json json = {{"key", d.key}, {"kind", name_of(d.kind)}};
        if (d.kind != DifferenceKind::values) {
            json["a"] = d.a;
            json["b"] = d.b;
            return json;
        }
        json["dtype"] = short_name_of(d.dtype);
        json["shape"] = d.shape;
        json["elements"] = optim::numel(d.shape);
        json["elements_different"] = d.elements_different;
        json["largest_difference"] = std::isfinite(d.largest) ? Json(d.largest) : Json();
        json["first_difference"] = {{"index", d.first.index},
                                    {"a_bits", hex_bits(d.dtype, d.first.a_bits)},
                                    {"b_bits", hex_bits(d.dtype, d.first.b_bits)},
                                    {"ulp", d.first.ulp ? Json(*d.first.ulp) : Json()}};
        return json;
    };
    const Json all = {{"schema", "swaplab.diff/1"},
                      {"a", report.a},
                      {"b", report.b},
                      {"exit", static_cast<int>(report.exit_code())},
                      {"equal", report.equal},
                      {"differences", array_of(report.differences, difference)},
                      {"only_in_a", report.only_a},
                      {"only_in_b", report.only_b}};
    return all.dump(-1, ' ', true, Json::error_handler_t::replace);
}

std::vector<std::pair<std::string, Shape>> shapes_from_json(const std::string& text,
                                                            const std::string& path) {
    const auto refuse = [&](const std::string& found) {
        throw sim::ArgumentError(
            fmt::format("{} is no shapes file; expected {{\"fqn\": [dims], ...}}, found {}", path,
                        found),
            {{"file", path}, {"expected", "{\"fqn\": [dims]}"}, {"found", found}});
    };
    const Json json = Json::parse(text, nullptr, false);
    if (!json.is_object()) {
        refuse(json.is_discarded() ? "text that is no JSON" : json.type_name());
    }
    std::vector<std::pair<std::string, Shape>> shapes;
    for (const auto& [fqn, dims] : json.items()) {
        Shape shape;
        for (const Json& size : dims.is_array() ? dims : Json::array({nullptr})) {
            if (!size.is_number_unsigned() || size.get<std::uint64_t>() > INT64_MAX) {
                refuse(fmt::format("{} as the dims of {}",
                                   dims.dump(-1, ' ', true, Json::error_handler_t::replace), fqn));
            }
            shape.push_back(size.get<std::int64_t>());
        }
        shapes.emplace_back(fqn, std::move(shape));
    }
    return shapes;
}

}  // namespace swaplab::harness
