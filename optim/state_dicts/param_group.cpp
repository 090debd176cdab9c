#include "swaplab/optim/param_group.hpp"

#include "state_dicts/group_keys.hpp"

#include "swaplab/sim/error.hpp"

#include <algorithm>
#include <array>

namespace swaplab::optim {
namespace {

void require(bool ok, const std::string& text, double value) {
    if (!ok) {
        throw sim::ArgumentError(text + ": " + repr(value), {{"found", repr(value)}});
    }
}

/// Sets `key` to what the checkpoint had for it, else to PyTorch's default: these choose between
/// equivalent code paths of PyTorch and mean nothing here.
void set_flag(Dict& dict, const ParamGroup& group, const char* key, Value otherwise) {
    const Value* kept = group.extra.find(key);
    dict.set(key, kept == nullptr ? std::move(otherwise) : *kept);
}

}  // namespace

void check_options(const AdamWOptions& options) {
    // Written as "not (0 <= x)" so that NaN is rejected.
    require(0.0 <= options.lr, "Invalid learning rate", options.lr);
    require(0.0 <= options.eps, "Invalid epsilon value", options.eps);
    require(0.0 <= options.beta1 && options.beta1 < 1.0, "Invalid beta parameter at index 0",
            options.beta1);
    require(0.0 <= options.beta2 && options.beta2 < 1.0, "Invalid beta parameter at index 1",
            options.beta2);
    require(0.0 <= options.weight_decay, "Invalid weight_decay value", options.weight_decay);
}

bool is_own_group_key(std::string_view key) {
    static constexpr std::array<std::string_view, 8> own = {
        "lr",      "betas",    "eps",    "weight_decay",
        "amsgrad", "maximize", "params", "decoupled_weight_decay"};
    return std::find(own.begin(), own.end(), key) != own.end();
}

Dict to_dict(const ParamGroup& group) {
    const AdamWOptions& options = group.options;
    Dict dict;
    dict.set("lr", options.lr);
    dict.set("betas", Tuple{{options.beta1, options.beta2}});
    dict.set("eps", options.eps);
    dict.set("weight_decay", options.weight_decay);
    dict.set("amsgrad", options.amsgrad);
    dict.set("maximize", options.maximize);
    set_flag(dict, group, "foreach", None{});
    set_flag(dict, group, "capturable", false);
    set_flag(dict, group, "differentiable", false);
    set_flag(dict, group, "fused", None{});
    dict.set("decoupled_weight_decay", true);
    for (const auto& [key, value] : group.extra.items) {
        const auto* name = key.get_if<std::string>();
        if (name == nullptr) {
            dict.items.emplace_back(key, value);
        } else if (!is_own_group_key(*name)) {
            dict.set(*name, value);
        }
    }
    List names;
    for (const ParameterPtr& parameter : group.params) {
        names.items.emplace_back(parameter->name);
    }
    dict.set("params", std::move(names));
    return dict;
}

}  // namespace swaplab::optim
