#include "scenario/language/build.hpp"
#include "scenario/language/patch.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace swaplab::harness::scenario {
namespace {

using Kind = Node::Kind;

std::vector<const Node*> tables(const Node& document, std::string_view key) {
    std::vector<const Node*> out;
    const Node* list = document.find(key);
    if (list != nullptr && list->is(Kind::list)) {
        for (const Node& item : list->items) {
            if (item.is(Kind::table)) {
                out.push_back(&item);
            }
        }
    }
    return out;
}

std::int64_t product(const Shape& mesh) {
    std::int64_t size = 1;
    for (const std::int64_t n : mesh) {
        size = n > 0 && size <= 64 ? size * n : 65;
    }
    return size;
}

void read_world(const Node& document, SetUp& out, Diagnostics& diagnostics) {
    const Node& world = table_or_empty(document, "world");
    const Node* mesh = world.find("mesh");
    const Node* size = world.find("size");
    std::int64_t ranks = count_or(world, "size", 1);
    if (mesh != nullptr && mesh->is(Kind::list)) {
        out.mesh = shape_of(*mesh);
        ranks = product(out.mesh);
        if (size != nullptr && size->integer != ranks) {
            diagnostics.error(
                "bad-value", size->at,
                fmt::format("world.size = {}, but world.mesh has {} ranks", size->integer, ranks));
        }
    } else {
        out.mesh = {ranks};
    }
    if (ranks < 1 || ranks > 64) {
        const Node& found = size != nullptr ? *size : *mesh;
        diagnostics.error("bad-value", found.at,
                          fmt::format("world.{} = {}: a world has 1 to 64 ranks",
                                      size != nullptr ? "size" : "mesh", show_plain(found)));
        ranks = 1;
        out.mesh = {1};
    }
    out.world_size = static_cast<int>(ranks);
    const std::string kind = text_or(world, "kind", "fiber");
    out.world_kind = kind == "thread"    ? sim::WorldKind::thread
                     : kind == "process" ? sim::WorldKind::process
                                         : sim::WorldKind::fiber;
}

void require_plain_bytes(const Node& table, std::string_view key, Diagnostics& diagnostics) {
    const Node* node = table.find(key);
    Diagnostics reported_already;
    const auto amount =
        node != nullptr ? read_amount(*node, AmountOf::bytes, key, reported_already) : std::nullopt;
    constexpr std::int64_t most_bytes = std::int64_t{1} << 43U;
    const std::int64_t value = amount ? amount->value({}).value_or(0) : 1;
    if (amount && (amount->derived() || value <= 0 || value > most_bytes)) {
        diagnostics.error("bad-amount", node->at,
                          fmt::format("{} = {}: plain bytes above 0 are expected, at most 8192 GiB",
                                      key, show(*node)));
    }
}

std::optional<std::uint64_t> limit_of(const Node& table, std::string_view key,
                                      Diagnostics& diagnostics) {
    if (table.find(key) == nullptr) {
        return std::nullopt;
    }
    require_plain_bytes(table, key, diagnostics);
    return bytes_or(table, key, 0);
}

void read_params(const Node& document, const Order& order, SetUp& out, Diagnostics& diagnostics) {
    for (const Node* table : tables(document, "param")) {
        ParamSpec spec = param_spec(*table, out.mesh, diagnostics);
        if (out.find(spec.name) != nullptr) {
            diagnostics.error("name-taken", table->at,
                              fmt::format("two parameters named \"{}\"", spec.name));
            continue;
        }
        out.params.push_back(std::move(spec));
    }
    if (out.params.empty()) {
        diagnostics.error("missing-key", document.at, "no [[param]]: there is nothing to train");
    }
    if (order.names.empty()) {
        return;
    }
    std::vector<ParamSpec> sorted;
    for (const std::string& name : order.names) {
        const ParamSpec* spec = out.find(name);
        if (spec != nullptr) {
            sorted.push_back(*spec);
        }
    }
    if (sorted.size() != out.params.size() || order.names.size() != sorted.size()) {
        diagnostics.error("bad-value", order.at, "order names every parameter once");
        return;
    }
    out.params = std::move(sorted);
}

void read_groups(const Node& document, SetUp& out, Diagnostics& diagnostics) {
    std::vector<std::string> taken;
    for (const Node* table : tables(document, "group")) {
        GroupSpec group;
        group.options = out.options;
        hyper_patch(*table, diagnostics).apply(group.options);
        const auto patterns = texts(*table, "params");
        for (const ParamSpec& param : out.params) {
            const bool chosen = std::any_of(
                patterns.begin(), patterns.end(),
                [&](const std::string& pattern) { return glob_matches(pattern, param.name); });
            if (!chosen) {
                continue;
            }
            if (std::find(taken.begin(), taken.end(), param.name) != taken.end()) {
                diagnostics.error("name-taken", table->at,
                                  fmt::format("parameter \"{}\" is in two groups", param.name));
                continue;
            }
            taken.push_back(param.name);
            group.params.push_back(param.name);
        }
        if (group.params.empty()) {
            diagnostics.error("unused", table->at, "a group without parameters");
        }
        out.groups.push_back(std::move(group));
    }
    if (out.groups.empty()) {
        GroupSpec everything;
        everything.options = out.options;
        for (const ParamSpec& param : out.params) {
            everything.params.push_back(param.name);
            taken.push_back(param.name);
        }
        out.groups.push_back(std::move(everything));
    }
    for (const ParamSpec& param : out.params) {
        if (std::find(taken.begin(), taken.end(), param.name) == taken.end()) {
            diagnostics.error("unused", document.place_of("group"),
                              fmt::format("parameter \"{}\" is in no group", param.name));
        }
    }
}

void read_optimizer(const Node& document, SetUp& out, Diagnostics& diagnostics) {
    const Node& optimizer = table_or_empty(document, "optimizer");
    hyper_patch(optimizer, diagnostics).apply(out.options);
    out.kind = text_or(optimizer, "kind", "case");
    out.slots = static_cast<int>(count_or(optimizer, "slots", 3));
    out.keep_slots = flag_or(optimizer, "keep_slots", false);
    if (const Node* bucket = optimizer.find("bucket")) {
        Diagnostics reported_already;
        const auto amount = read_amount(*bucket, AmountOf::elements, "bucket", reported_already);
        out.bucket_elements = amount ? amount->value({}).value_or(0) : out.bucket_elements;
    }
    if (out.bucket_elements < 1 || out.slots < 1) {
        diagnostics.error("bad-value", optimizer.at, "bucket and slots are at least 1");
        out.bucket_elements = std::max<std::int64_t>(out.bucket_elements, 1);
        out.slots = std::max(out.slots, 1);
    }
}

}  // namespace

const Node& table_or_empty(const Node& table, std::string_view key) {
    static const Node empty = make_table({});
    const Node* found = table.find(key);
    return found != nullptr && found->is(Kind::table) ? *found : empty;
}

std::string text_or(const Node& table, std::string_view key, std::string fallback) {
    const Node* node = table.find(key);
    return node != nullptr && node->is(Kind::text) ? node->text : std::move(fallback);
}

std::int64_t count_or(const Node& table, std::string_view key, std::int64_t fallback) {
    const Node* node = table.find(key);
    return node != nullptr && node->is(Kind::integer) ? node->integer : fallback;
}

bool flag_or(const Node& table, std::string_view key, bool fallback) {
    const Node* node = table.find(key);
    return node != nullptr && node->is(Kind::boolean) ? node->boolean : fallback;
}

std::uint64_t bytes_or(const Node& table, std::string_view key, std::uint64_t fallback) {
    const Node* node = table.find(key);
    Diagnostics reported_already;
    if (node == nullptr) {
        return fallback;
    }
    const auto amount = read_amount(*node, AmountOf::bytes, key, reported_already);
    const auto value = amount ? amount->value({}) : std::nullopt;
    return value && *value > 0 ? static_cast<std::uint64_t>(*value) : fallback;
}

std::vector<std::string> texts(const Node& table, std::string_view key) {
    std::vector<std::string> out;
    const Node* node = table.find(key);
    if (node != nullptr && node->is(Kind::text)) {
        out.push_back(node->text);
    }
    for (const Node& item : node != nullptr ? node->items : std::vector<Node>{}) {
        if (item.is(Kind::text)) {
            out.push_back(item.text);
        }
    }
    return out;
}

Shape shape_of(const Node& list) {
    Shape shape;
    for (const Node& item : list.items) {
        shape.push_back(item.is(Kind::integer) ? item.integer : 0);
    }
    return shape;
}

Checks checks_from(std::string_view name) {
    return name == "torch" ? Checks::torch : name == "none" ? Checks::none : Checks::full;
}

Parts parts_from(const Node& table, const Node& engine) {
    Parts parts;
    std::vector<std::string> what = texts(table, "what");
    what = what.empty() ? texts(engine, "what") : what;
    if (!what.empty()) {
        parts.model = std::find(what.begin(), what.end(), "model") != what.end();
        parts.optimizer = std::find(what.begin(), what.end(), "optimizer") != what.end();
        parts.optimizer_first = what.front() == "optimizer";
        parts.given = true;
    }
    return parts;
}

Shape tensor_shape_of(const Node& list, Diagnostics& diagnostics) {
    constexpr std::int64_t max_elements = std::int64_t{1} << 28;
    constexpr std::size_t max_dims = 64;
    Shape shape = shape_of(list);
    std::int64_t elements = 1;
    for (const std::int64_t n : shape) {
        elements = elements > max_elements ? elements : elements * std::max<std::int64_t>(n, 1);
    }
    if (elements > max_elements || shape.size() > max_dims) {
        diagnostics.error(
            "bad-value", list.at,
            fmt::format("shape = {}: more than 2^28 elements or 64 dims", show(list)));
        return {1};
    }
    return shape;
}

ParamSpec param_spec(const Node& table, const Shape& mesh, Diagnostics& diagnostics) {
    ParamSpec spec;
    spec.name = text_or(table, "name", "");
    if (const Node* shape = table.find("shape")) {
        spec.shape = tensor_shape_of(*shape, diagnostics);
    }
    if (const Node* init = table.find("init"); init != nullptr && init->is_number()) {
        spec.init = init->number();
    }
    for (const std::string& text : texts(table, "placements")) {
        if (const auto placement = optim::placement_from_text(text)) {
            spec.placements.push_back(*placement);
        }
    }
    if (spec.placements.size() > mesh.size()) {
        diagnostics.error("bad-value", table.place_of("placements"),
                          fmt::format("{} placements for a mesh of {} axes", spec.placements.size(),
                                      mesh.size()));
        spec.placements.clear();
    }
    for (const optim::Placement& placement : spec.placements) {
        const int dims = static_cast<int>(spec.shape.size());
        const bool in_range = placement.dim < dims && placement.dim >= -dims;
        if (placement.kind != optim::Placement::Kind::replicate && !in_range) {
            diagnostics.error(
                "bad-value", table.place_of("placements"),
                fmt::format("{} of a tensor with {} dims", to_string(placement), dims));
            spec.placements.clear();
            break;
        }
    }
    return spec;
}

SetUp build_set_up(const Node& document, const Order& order, Diagnostics& diagnostics) {
    SetUp out;
    const Node& scenario = table_or_empty(document, "scenario");
    out.seed = static_cast<std::uint64_t>(count_or(scenario, "seed", 1));
    if (const Node* timeout = scenario.find("timeout")) {
        Diagnostics reported_already;
        out.timeout_ms = read_duration(*timeout, "timeout", reported_already).value_or(10'000);
    }
    read_world(document, out, diagnostics);
    const Node& device = table_or_empty(document, "device");
    const Node& engine = table_or_empty(document, "engine");
    out.capacity_bytes = bytes_or(device, "capacity", out.capacity_bytes);
    require_plain_bytes(device, "capacity", diagnostics);
    const std::string schedule = text_or(device, "schedule", "fifo");
    out.every_order = schedule == "exhaustive";
    out.schedule = out.every_order
                       ? sim::Schedule::chosen
                       : sim::schedule_from_name(schedule).value_or(sim::Schedule::fifo);
    out.allocator = sim::allocation_policy_from_name(text_or(device, "allocator", "raw"))
                        .value_or(sim::AllocationPolicy::raw);
    out.profile = text_or(device, "profile", "unit");
    const Node& host = table_or_empty(document, "host");
    out.pinned_policy = sim::pinned_policy_from_name(text_or(host, "pinned_policy", "exact"))
                            .value_or(sim::PinnedPolicy::exact);
    out.pinned_quota_bytes = limit_of(host, "pinned", diagnostics);
    out.host_capacity_bytes = limit_of(host, "capacity", diagnostics);
    const Node& storage = table_or_empty(document, "storage");
    out.posix = text_or(storage, "kind", "memory") == "posix";
    out.disk_bytes = limit_of(storage, "capacity", diagnostics);
    out.chunk_bytes = bytes_or(engine, "chunk", out.chunk_bytes);
    require_plain_bytes(engine, "chunk", diagnostics);
    read_optimizer(document, out, diagnostics);
    read_params(document, order, out, diagnostics);
    read_groups(document, out, diagnostics);
    for (const Node* table : tables(document, "checkpoint")) {
        out.checkpoints.push_back(
            {text_or(*table, "name", ""), text_or(*table, "path", ""), table->place_of("path")});
    }
    return out;
}

std::vector<std::string> select_params(const std::vector<std::string>& patterns,
                                       const SetUp& set_up, Position at, Diagnostics& diagnostics) {
    std::vector<std::string> out;
    std::vector<std::string> names;
    for (const ParamSpec& param : set_up.params) {
        names.push_back(param.name);
    }
    for (const std::string& pattern : patterns) {
        bool any = false;
        for (const std::string& name : names) {
            if (glob_matches(pattern, name)) {
                any = true;
                if (std::find(out.begin(), out.end(), name) == out.end()) {
                    out.push_back(name);
                }
            }
        }
        if (!any) {
            const std::string near = nearest(pattern, names);
            diagnostics.error("no-such-name", at,
                              fmt::format("no parameter \"{}\"{}", pattern,
                                          near.empty() ? "" : "; nearest: " + near),
                              "parameters here: " + join(names));
        }
    }
    return out;
}

}  // namespace swaplab::harness::scenario
