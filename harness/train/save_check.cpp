#include "train/save_check.hpp"

#include "swaplab/sim/mutant.hpp"

#include <map>
#include <string>

namespace swaplab::harness {

using optim::Mismatch;
using optim::Placement;
using optim::Tensor;

namespace {

/// True when ranks hold different parts of it; a replica may be written as a plain tensor.
bool is_split(const Tensor& data) {
    if (!data.shard()) {
        return false;
    }
    for (const Placement& placement : data.shard()->placements) {
        if (placement.kind == Placement::Kind::shard ||
            placement.kind == Placement::Kind::strided_shard) {
            return data.shard()->mesh != optim::Shape{1};
        }
    }
    return false;
}

}  // namespace

std::vector<Mismatch> find_plain_moments(const optim::StateDict& state,
                                         const std::vector<optim::ParamGroup>& groups, int rank) {
    std::map<std::string, const optim::Dict*> leaves_of;
    for (const auto& [fqn, leaves] : state.state) {
        leaves_of.emplace(fqn, &leaves);
    }
    std::vector<Mismatch> found;
    for (const optim::ParamGroup& group : groups) {
        for (const optim::ParameterPtr& param : group.params) {
            const auto leaves = leaves_of.find(param->name);
            if (leaves == leaves_of.end() || !is_split(param->data)) {
                continue;
            }
            for (const auto& [key, value] : leaves->second->items) {
                const auto* tensor = value.get_if<Tensor>();
                const auto* name = key.get_if<std::string>();
                if (tensor == nullptr || name == nullptr || *name == "step" || tensor->shard() ||
                    SWAPLAB_MUTANT("engine.plain_moments_pass")) {
                    continue;
                }
                found.push_back({rank,
                                 param->name,
                                 *name,
                                 optim::to_string(param->data.global_shape()),
                                 "plain tensor " + optim::to_string(tensor->local_shape()),
                                 "without shard metadata one rank's shard would be kept and the "
                                 "others lost",
                                 {}});
            }
        }
    }
    return found;
}

}  // namespace swaplab::harness
