#include "inspect/json.hpp"

#include <nlohmann/json.hpp>

namespace swaplab::harness {
namespace {

using Json = nlohmann::ordered_json;

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

}  // namespace swaplab::harness
