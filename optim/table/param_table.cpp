#include "table/param_table.hpp"

#include "swaplab/sim/error.hpp"
#include "swaplab/sim/mutant.hpp"

#include <fmt/format.h>

#include <utility>

namespace swaplab::optim {
namespace {

[[noreturn]] void refuse(const std::string& text, const Parameter& parameter) {
    throw sim::ArgumentError(text, {{"parameter", parameter.name}});
}

bool same_shape(const Tensor& a, const Tensor& b) {
    return a.local_shape() == b.local_shape();
}

bool on_device(const Tensor& tensor) {
    return tensor.defined() && tensor.dtype() == DType::float32 &&
           tensor.memory() == sim::MemoryKind::device;
}

void check_gradient(const Parameter& parameter) {
    if (SWAPLAB_MUTANT("step.gradient_shape")) {
        return;
    }
    if (!on_device(parameter.grad) || !same_shape(parameter.data, parameter.grad)) {
        refuse(fmt::format("the gradient of parameter {} must be a float32 device tensor of shape "
                           "{}, like the parameter",
                           parameter.name, to_string(parameter.data.local_shape())),
               parameter);
    }
}

}  // namespace

ParamTable::ParamTable(int rank, std::vector<ParamGroup> groups) : rank_(rank) {
    if (groups.empty()) {
        throw sim::ArgumentError("optimizer got an empty parameter list");
    }
    for (ParamGroup& group : groups) {
        check_group(group);
        append(std::move(group));
    }
}

void ParamTable::check_parameter(const Parameter& parameter) const {
    if (!on_device(parameter.data) || !on_device(parameter.grad)) {
        refuse(fmt::format("parameter {} and its gradient must be float32 device tensors",
                           parameter.name),
               parameter);
    }
    check_gradient(parameter);
    const auto& shard = parameter.data.shard();
    const Shape& local = parameter.data.local_shape();
    if (!shard) {
        return;
    }
    const std::optional<Box> box = shard->box_of(rank_);
    const bool fits = box ? box->sizes == local : numel(local) == 0;
    if (!fits && !SWAPLAB_MUTANT("groups.own_part")) {
        refuse(fmt::format("parameter {} has local shape {}, but its shard metadata gives rank {} "
                           "{}",
                           parameter.name, to_string(local), rank_,
                           box ? to_string(box->sizes) : "nothing"),
               parameter);
    }
}

void ParamTable::check_group(const ParamGroup& group) const {
    check_options(group.options);
    std::set<std::string> names;
    for (const ParameterPtr& parameter : group.params) {
        check_parameter(*parameter);
        if (!names.insert(parameter->name).second) {
            refuse(
                fmt::format("parameter {} appears twice in one parameter group", parameter->name),
                *parameter);
        }
        if (names_.contains(parameter->name) && !SWAPLAB_MUTANT("groups.parameter_once")) {
            refuse(fmt::format("some parameters appear in more than one parameter group: {}",
                               parameter->name),
                   *parameter);
        }
    }
}

void ParamTable::append(ParamGroup group) {
    for (std::size_t i = 0; i < group.params.size(); ++i) {
        entries_.push_back({groups_.size(), i, group.options.amsgrad, group.params[i].get()});
        names_.insert(group.params[i]->name);
        steps_->push_back(0);
    }
    groups_.push_back(std::move(group));
    ++generation_;
}

Parameter& ParamTable::parameter(ParamId id) const {
    return *groups_[entries_[id].group].params[entries_[id].index];
}

const AdamWOptions& ParamTable::options(ParamId id) const {
    return groups_[entries_[id].group].options;
}

std::vector<std::string> ParamTable::moment_keys(ParamId id) const {
    std::vector<std::string> keys{"exp_avg", "exp_avg_sq"};
    if (amsgrad(id)) {
        keys.emplace_back("max_exp_avg_sq");
    }
    return keys;
}

void ParamTable::check_groups_unchanged() const {
    ParamId id = 0;
    for (const ParamGroup& group : groups_) {
        for (std::size_t i = 0; i < group.params.size(); ++i, ++id) {
            if (id >= size() || entries_[id].identity != group.params[i].get()) {
                throw sim::ArgumentError(
                    "parameters of param_groups() were added, removed or replaced; use "
                    "add_param_group");
            }
            if (entries_[id].amsgrad != group.options.amsgrad &&
                !SWAPLAB_MUTANT("step.amsgrad_switched")) {
                refuse(fmt::format("amsgrad of the group of parameter {} was switched after its "
                                   "moments were made",
                                   group.params[i]->name),
                       *group.params[i]);
            }
        }
    }
    if (id != size()) {
        throw sim::ArgumentError(
            "parameters were removed from param_groups(); build a new optimizer instead");
    }
}

std::vector<ParamId> ParamTable::to_step() const {
    check_groups_unchanged();
    std::vector<ParamId> ids;
    for (ParamId id = 0; id < size(); ++id) {
        const Parameter& parameter = this->parameter(id);
        if (!parameter.has_grad && !SWAPLAB_MUTANT("step.absent_gradient")) {
            continue;
        }
        check_gradient(parameter);
        if ((*steps_)[id] >= step_max && !SWAPLAB_MUTANT("step.counter_limit")) {
            refuse(fmt::format("the step of parameter {} would pass {}, the largest that a "
                               "checkpoint holds exactly",
                               parameter.name, step_max),
                   parameter);
        }
        ids.push_back(id);
    }
    return ids;
}

}  // namespace swaplab::optim
