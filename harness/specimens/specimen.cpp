#include "specimens/specimen.hpp"

#include "swaplab/sim/buffer.hpp"
#include "swaplab/sim/error.hpp"

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <set>

namespace swaplab::harness {

using optim::Dict;
using optim::Parameter;
using optim::ParamGroup;
using optim::Snapshot;
using optim::StateDict;
using optim::Tensor;

std::int64_t step_value(const Tensor& step) {
    return std::llround(optim::to_floats(step).front());
}

void set_step(const Tensor& step, std::int64_t value) {
    const auto number = static_cast<float>(value);
    step.storage().write(0, std::as_bytes(std::span(&number, 1)));
}

Specimen::Specimen(sim::Device& device, sim::Communicator& communicator,
                   std::vector<ParamGroup> groups, DefectSet defects)
    : device_(&device),
      communicator_(&communicator),
      defects_(defects),
      stream_(device, "specimen"),
      groups_(std::make_shared<std::vector<ParamGroup>>()),
      step_groups_(groups_) {
    if (defects.has(Defect::slots_unordered) || defects.has(Defect::frees_unwaited) ||
        defects.has(Defect::download_unwaited)) {
        other_stream_.emplace(device, "specimen's other");
    }
    if (groups.empty()) {
        throw sim::ArgumentError("optimizer got an empty parameter list",
                                 {{"operation", "Specimen"},
                                  {"parameter", "groups"},
                                  {"expected", "one group or more"},
                                  {"found", "none"}});
    }
    for (ParamGroup& group : groups) {
        refuse_group(group);
        groups_->push_back(std::move(group));
        for (const auto& param : groups_->back().params) {
            create_state(groups_->back(), *param);
        }
    }
}

void Specimen::refuse_group(const ParamGroup& group) const {
    optim::check_options(group.options);
    std::set<std::string> names;
    for (const ParamGroup& other : *groups_) {
        for (const auto& param : other.params) {
            names.insert(param->name);
        }
    }
    for (const auto& param : group.params) {
        if (!names.insert(param->name).second) {
            throw sim::ArgumentError("some parameters appear in more than one parameter group",
                                     {{"operation", "add_param_group"},
                                      {"parameter", param->name},
                                      {"expected", "in one group"},
                                      {"found", "in two"}});
        }
    }
}

void Specimen::create_state(const ParamGroup& group, const Parameter& param) {
    ParamState& state = state_[param.name];
    state.step = optim::make_scalar(0.0F);
    const std::size_t kinds = group.options.amsgrad ? 3 : 2;
    for (std::size_t kind = 0; kind < kinds; ++kind) {
        state.moments[kind] = zero_moment(param, kind);
    }
    first_moments_[param.name] = state.moments;
}

Tensor Specimen::new_moment(const Parameter& param, std::size_t kind, const Tensor& like) const {
    auto storage = optim::make_pinned_storage(*device_, like.local_bytes(),
                                              param.name + "." + moment_keys[kind]);
    const bool plain = defects_.has(Defect::local_moments);
    const bool fits = like.local_shape() == param.data.local_shape();
    return {optim::DType::float32, like.local_shape(), std::move(storage),
            plain || !fits ? std::nullopt : param.data.shard()};
}

Tensor Specimen::zero_moment(const Parameter& param, std::size_t kind) const {
    Tensor moment = new_moment(param, kind, param.data);
    const std::uint64_t bytes = moment.local_bytes();
    if (defects_.has(Defect::device_init) && bytes > 0) {
        // torch.zeros_like(p).to("cpu"): zero on the device, then brought here.
        sim::DeviceBuffer temporary(*device_, bytes, stream_,
                                    param.name + "." + moment_keys[kind] + " on device");
        device_->fill_async(temporary.data(), std::byte{0}, bytes, stream_);
        device_->copy_async(moment.storage().data(), temporary.data(), bytes,
                            sim::CopyDirection::device_to_host, stream_);
        device_->synchronize(stream_.ref());
    }
    return moment;
}

std::vector<ParamGroup>& Specimen::param_groups() noexcept {
    return *groups_;
}

void Specimen::add_param_group(ParamGroup group) {
    refuse_group(group);
    groups_->push_back(group);
    if (step_groups_ != groups_) {
        step_groups_->push_back(group);
    }
    if (defects_.has(Defect::drops_added_groups)) {
        return;
    }
    for (const auto& param : group.params) {
        create_state(group, *param);
    }
}

void Specimen::zero_state() {
    for (auto& [name, state] : state_) {
        set_step(state.step, 0);
        for (const Tensor& moment : state.moments) {
            if (moment.defined()) {
                moment.storage().write(0, std::vector<std::byte>(moment.local_bytes()));
            }
        }
    }
}

void Specimen::init_state() {
    if (defects_.has(Defect::reinit_zeroes)) {
        zero_state();
    }
}

const ParamState* Specimen::find_state(const Parameter& param) const {
    const auto found = state_.find(param.name);
    return found == state_.end() ? nullptr : &found->second;
}

const Moments& Specimen::moments_of_step(const std::string& name) const {
    return defects_.has(Defect::stale_moments) ? first_moments_.at(name) : state_.at(name).moments;
}

StateDict Specimen::pack(const std::vector<ParamGroup>& groups, bool as_step_reads) const {
    StateDict result;
    for (const ParamGroup& group : groups) {
        for (const auto& param : group.params) {
            const ParamState* state = find_state(*param);
            if (state == nullptr) {
                continue;
            }
            const Moments& moments = as_step_reads ? moments_of_step(param->name) : state->moments;
            Dict leaves;
            for (std::size_t kind = 0; kind < moments.size(); ++kind) {
                if (moments[kind].defined()) {
                    leaves.set(moment_keys[kind], moments[kind]);
                } else if (defects_.has(Defect::none_leaf)) {
                    leaves.set(moment_keys[kind], optim::None{});
                }
            }
            // The published class's order; a checkpoint writer's choice of replicas depends on it.
            leaves.set("step", state->step);
            result.state.emplace_back(param->name, std::move(leaves));
        }
        result.param_groups.push_back(optim::to_dict(group));
    }
    return result;
}

StateDict Specimen::state_dict(Snapshot how) const {
    StateDict result = pack(*groups_, false);
    if (how == Snapshot::owned) {
        for (auto& [name, leaves] : result.state) {
            for (auto& [key, value] : leaves.items) {
                if (const auto* tensor = value.get_if<Tensor>()) {
                    value = tensor->clone_to_host();
                }
            }
        }
    }
    return result;
}

StateDict Specimen::step_state() const {
    return pack(*step_groups_, true);
}

std::unique_ptr<optim::Optimizer> make_specimen(sim::Device& device,
                                                sim::Communicator& communicator,
                                                std::vector<ParamGroup> groups,
                                                const std::vector<std::string>& defect_names) {
    return std::make_unique<Specimen>(device, communicator, std::move(groups),
                                      DefectSet(defect_names));
}

}  // namespace swaplab::harness
