#include "support/planner_expectation.hpp"

#include "checkpoint/planner.hpp"
#include "support/expected_value.hpp"

#include <map>

namespace swaplab::tests {
namespace {

using harness::Box;
using harness::GlobalPlan;
using harness::LocalPlan;
using harness::Shape;
using Kind = harness::WriteItem::Kind;

sim::DType dtype_of(const std::string& name) {
    static const std::map<std::string, sim::DType> names{{"f4", sim::DType::float32},
                                                         {"f8", sim::DType::float64},
                                                         {"bf2", sim::DType::bfloat16},
                                                         {"i8", sim::DType::int64},
                                                         {"u1", sim::DType::uint8}};
    return names.at(name);
}

std::string oracle_name_of(sim::DType dtype) {
    for (const char* name : {"f4", "f8", "bf2", "i8", "u1"}) {
        if (dtype_of(name) == dtype) {
            return name;
        }
    }
    return "?";
}

bool is_on(const Json& tensor, int rank) {
    if (!tensor.contains("on")) {
        return true;
    }
    const std::vector<int> on = tensor.at("on");
    return std::find(on.begin(), on.end(), rank) != on.end();
}

std::optional<optim::ShardSpec> spec_of(const Json& world, const Json& tensor) {
    if (tensor.at("placements").is_null()) {
        return std::nullopt;
    }
    optim::ShardSpec spec;
    spec.global_shape = tensor.at("size").get<Shape>();
    for (const std::string text : tensor.at("placements")) {
        spec.placements.push_back(optim::placement_from_text(text).value());
    }
    if (tensor.contains("submesh")) {
        spec.mesh_ranks = tensor.at("submesh").get<std::vector<int>>();
        spec.mesh = {static_cast<std::int64_t>(spec.mesh_ranks.size())};
    } else {
        spec.mesh = world.at("mesh").get<Shape>();
    }
    return spec;
}

optim::Tensor tensor_of(const Json& world, const Json& json, int rank) {
    std::optional<optim::ShardSpec> spec = spec_of(world, json);
    Shape local = json.at("size").get<Shape>();
    if (spec) {
        const std::optional<Box> box = spec->box_of(rank);
        local = box ? box->sizes : Shape(local.size(), 0);
    }
    if (json.value("local", false)) {
        spec.reset();
    }
    const sim::DType dtype = dtype_of(json.at("dtype"));
    auto storage = optim::make_host_storage(static_cast<std::uint64_t>(optim::numel(local)) *
                                            sim::size_of(dtype));
    return {dtype, local, std::move(storage), std::move(spec)};
}

std::vector<harness::Leaf> leaves_of(const Json& world, int rank) {
    std::vector<harness::Leaf> leaves;
    for (const Json& tensor : world.at("tensors")) {
        if (!is_on(tensor, rank)) {
            continue;
        }
        const std::string fqn = tensor.at("fqn");
        optim::Value value = 0.5;
        if (!tensor.value("bytes", false)) {
            value = tensor_of(world, tensor, rank);
        }
        leaves.push_back({fqn, {fqn}, std::move(value)});
    }
    return leaves;
}

Json json_of(const LocalPlan& plan) {
    Json rows = Json::array();
    for (const harness::WriteItem& item : plan) {
        if (item.kind == Kind::bytes) {
            rows.push_back({item.key, "B", nullptr, nullptr, nullptr, nullptr});
        } else {
            rows.push_back(
                Json::array({item.key, item.kind == Kind::shard ? "S" : "T", item.box.offsets,
                             item.box.sizes, item.global_shape, oracle_name_of(item.dtype)}));
        }
    }
    return rows;
}

Json json_of(const std::vector<harness::MetadataEntry>& entries) {
    Json rows = Json::array();
    for (const harness::MetadataEntry& entry : entries) {
        if (entry.tensor() == nullptr) {
            rows.push_back({entry.key, nullptr});
            continue;
        }
        Json chunks = Json::array();
        for (const harness::StoredChunk& chunk : entry.tensor()->chunks) {
            chunks.push_back(Json::array({chunk.box.offsets, chunk.box.sizes}));
        }
        rows.push_back(Json::array({entry.key, entry.tensor()->global_shape, chunks}));
    }
    return rows;
}

std::string error_type(const sim::Error& error) {
    for (const sim::ErrorField& field : error.fields()) {
        if (field.name == "pytorch_error") {
            return field.value;
        }
    }
    return "none";
}

/// "Type: text" of PyTorch, without the text.
std::string expected_type(const std::string& raises) {
    return raises.substr(0, raises.find(':'));
}

class PlannerChecker {
  public:
    ExpectationResult run(const Json& json) {
        for (const Json& world : json.at("worlds")) {
            check_world(world);
        }
        for (const Json& load : json.at("loads")) {
            check_load(load);
        }
        return result_;
    }

  private:
    void compare(const std::string& what, const Json& expected, const Json& found) {
        if (expected == found) {
            ++result_.agreeing;
        } else {
            result_.differing.push_back(what + ": expected " + expected.dump() + ", found " +
                                        found.dump());
        }
    }

    void check_world(const Json& world) {
        const std::string name = world.at("name");
        std::vector<LocalPlan> plans;
        for (int rank = 0; rank < world.at("ranks").get<int>(); ++rank) {
            plans.push_back(harness::make_local_plan(leaves_of(world, rank), rank));
            compare(name + " rank " + std::to_string(rank),
                    world.at("local").at(static_cast<std::size_t>(rank)), json_of(plans.back()));
        }
        worlds_[name] = world;
        for (const std::string option : {"default", "lowest_rank"}) {
            check_global(name + " " + option, world.at("save").at(option), plans,
                         option == "lowest_rank", name);
        }
    }

    void check_global(const std::string& what, const Json& expected,
                      const std::vector<LocalPlan>& plans, bool to_lowest_rank,
                      const std::string& world) {
        const auto kept = harness::deduplicate(plans, to_lowest_rank);
        Json rows = Json::array();
        try {
            const GlobalPlan plan = harness::make_global_plan(plans, kept);
            for (const auto& items : plan.by_rank) {
                Json row = Json::array();
                for (const harness::PlannedItem& item : items) {
                    row.push_back(
                        {item.position, item.index_hint ? Json(*item.index_hint) : Json()});
                }
                rows.push_back(std::move(row));
            }
            compare(what + " raises", expected.contains("raises"), false);
            compare(what + " metadata", expected.value("metadata", Json()), json_of(plan.entries));
            if (!to_lowest_rank) {
                metadata_[world].entries = plan.entries;
            }
        } catch (const harness::PlanError& error) {
            compare(what + " raises", expected_type(expected.value("raises", "nothing")),
                    error_type(error));
            for (const auto& positions : kept) {
                Json row = Json::array();
                for (const std::size_t position : positions) {
                    row.push_back({position, nullptr});
                }
                rows.push_back(std::move(row));
            }
        }
        compare(what + " kept", expected.at("kept"), rows);
    }

    void check_load(const Json& load) {
        const std::string saved = load.at(0);
        const std::string live = load.at(1);
        const Json& world = worlds_.at(live);
        for (int rank = 0; rank < world.at("ranks").get<int>(); ++rank) {
            compare("load " + saved + " into " + live + " rank " + std::to_string(rank),
                    without_text(load.at(2).at(static_cast<std::size_t>(rank))),
                    load_rows(metadata_.at(saved), world, rank));
        }
    }

    static Json without_text(const Json& expected) {
        return expected.is_string() ? Json(expected_type(expected)) : expected;
    }

    static Json load_rows(const harness::Metadata& metadata, const Json& world, int rank) {
        std::vector<harness::LiveLeaf> leaves;
        for (const harness::Leaf& leaf : leaves_of(world, rank)) {
            harness::LiveLeaf live;
            live.key = leaf.key;
            if (const auto* tensor = leaf.value.get_if<optim::Tensor>()) {
                live.is_tensor = true;
                live.global_shape = tensor->global_shape();
                live.box = Box{Shape(live.global_shape.size(), 0), live.global_shape};
                if (tensor->shard()) {
                    live.box = tensor->shard()->box_of(rank);
                }
            }
            leaves.push_back(std::move(live));
        }
        try {
            Json rows = Json::array();
            for (const harness::ReadItem& item : harness::make_load_plan(metadata, leaves)) {
                rows.push_back({item.key, item.is_tensor ? "T" : "B",
                                item.live_offset ? Json(*item.live_offset) : Json(),
                                item.stored_offset ? Json(*item.stored_offset) : Json(),
                                item.in_live, item.in_stored, item.lengths});
            }
            return rows;
        } catch (const harness::PlanError& error) {
            return error_type(error);
        }
    }

    std::map<std::string, Json> worlds_;
    std::map<std::string, harness::Metadata> metadata_;
    ExpectationResult result_;
};

}  // namespace

ExpectationResult check_planner(const std::string& json) {
    return PlannerChecker().run(Json::parse(json));
}

}  // namespace swaplab::tests
