#include "scenario/play/edit.hpp"

#include "scenario/play/node_value.hpp"
#include "scenario/play/seeded_values.hpp"

#include "swaplab/sim/error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace swaplab::harness::scenario {
namespace {

using optim::Dict;
using optim::Tensor;
using optim::Value;

void drop(Dict& dict, const std::string& key) {
    dict.items.erase(std::remove_if(dict.items.begin(), dict.items.end(),
                                    [&](const auto& item) {
                                        const auto* name =
                                            item.first.template get_if<std::string>();
                                        return name != nullptr && *name == key;
                                    }),
                     dict.items.end());
}

Tensor filled(const Tensor& tensor, double value) {
    std::vector<float> values(static_cast<std::size_t>(tensor.local_numel()),
                              static_cast<float>(value));
    return optim::make_host_tensor(values, tensor.local_shape(), tensor.shard());
}

/// The same leading elements in another global shape; the rest is zero.
Tensor reshaped(const Tensor& tensor, const optim::Shape& global_shape, int rank) {
    auto shard = tensor.shard();
    optim::Shape local = global_shape;
    if (shard) {
        shard->global_shape = global_shape;
        const auto box = shard->box_of(rank);
        local = box ? box->sizes : optim::Shape(global_shape.size());
    }
    std::vector<float> values = optim::to_floats(tensor);
    values.resize(static_cast<std::size_t>(optim::numel(local)));
    return optim::make_host_tensor(values, local, shard);
}

void edit_value(Dict& dict, const std::string& key, Value& value, const EditStep& step, int rank) {
    if (step.drop) {
        drop(dict, key);
        return;
    }
    const auto* tensor = value.get_if<Tensor>();
    if (tensor == nullptr) {
        if (step.set) {
            value = to_value(*step.set);
        }
        return;
    }
    if (step.unshard) {
        value = tensor->without_shard();
    } else if (step.shape) {
        value = reshaped(*tensor, *step.shape, rank);
    } else if (step.set) {
        value = filled(*tensor, step.set->number());
    }
}

/// Whether the dict has any of the keys.
bool edit_dict(Dict& dict, const EditStep& step, int rank) {
    bool any = false;
    for (const std::string& key : step.keys) {
        if (Value* value = dict.find(key)) {
            any = true;
            edit_value(dict, key, *value, step, rank);
        }
    }
    return any;
}

bool edit_states(optim::StateDict& state_dict, const EditStep& step, int rank) {
    bool any = false;
    for (const std::string& name : step.params) {
        if (Dict* state = state_dict.find(name)) {
            any = edit_dict(*state, step, rank) || any;
        }
    }
    return any;
}

}  // namespace

void edit_state_dict(optim::StateDict& state_dict, const EditStep& step, int rank) {
    std::vector<Dict>& groups = state_dict.param_groups;
    const bool any =
        !step.group ? edit_states(state_dict, step, rank)
                    : *step.group < groups.size() && edit_dict(groups[*step.group], step, rank);
    if (!any) {
        throw sim::ArgumentError(
            fmt::format("edit: \"{}\" has nothing that is selected: choose of and key that it has",
                        step.in),
            {{"operation", "edit"}, {"file", step.in}});
    }
}

}  // namespace swaplab::harness::scenario
