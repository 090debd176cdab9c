#include "table/table_dict.hpp"

namespace swaplab::optim {
namespace {

Dict state_of(const ParamTable& table, ParamId id, const std::vector<Tensor>& moments,
              Snapshot how) {
    const bool live = how == Snapshot::live;
    const std::vector<std::string> keys = table.moment_keys(id);
    Dict state;
    state.set("step", live ? live_step(table.steps(), id)
                           : make_scalar(static_cast<float>((*table.steps())[id])));
    for (std::size_t kind = 0; kind < keys.size(); ++kind) {
        state.set(keys[kind], live ? moments[kind] : moments[kind].clone_to_host());
    }
    return state;
}

}  // namespace

StateDict make_state_dict(const ParamTable& table, const MomentsOf& moments_of, Snapshot how) {
    StateDict dict;
    for (ParamId id = 0; id < table.size(); ++id) {
        const std::vector<Tensor> moments = moments_of(id);
        if (!moments.empty()) {
            dict.state.emplace_back(table.parameter(id).name, state_of(table, id, moments, how));
        }
    }
    for (const ParamGroup& group : table.groups()) {
        Value saved = to_dict(group);
        if (how == Snapshot::owned) {
            saved = deep_copy(saved);
        }
        dict.param_groups.push_back(std::move(*saved.get_if<Dict>()));
    }
    return dict;
}

}  // namespace swaplab::optim
