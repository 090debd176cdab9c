#include "specimens/specimen.hpp"

#include "swaplab/optim/refusal.hpp"
#include "swaplab/optim/saved_group.hpp"
#include "swaplab/sim/agreement.hpp"

#include <algorithm>

namespace swaplab::harness {

using optim::Dict;
using optim::LoadOptions;
using optim::Parameter;
using optim::ParamGroup;
using optim::Snapshot;
using optim::SourceEntry;
using optim::StateDict;
using optim::StateSource;
using optim::Tensor;
using optim::Value;

namespace {

/// A 0-dim tensor for whatever a step was stored as; undefined when it is missing.
Tensor step_tensor(const Value* value) {
    if (value == nullptr || value->is_none()) {
        return {};
    }
    if (const auto* tensor = value->get_if<Tensor>()) {
        return *tensor;
    }
    if (const auto* real = value->get_if<double>()) {
        return optim::make_scalar(static_cast<float>(*real));
    }
    const auto* integer = value->get_if<std::int64_t>();
    return optim::make_scalar(integer == nullptr ? 0.0F : static_cast<float>(*integer));
}

}  // namespace

void Specimen::load(StateSource& source, const LoadOptions& options) {
    const std::string purpose = "Specimen::load of " + source.name();
    std::vector<optim::Mismatch> found;
    sim::agree(*communicator_, purpose + ": check", [&] { found = check(source, options); });
    optim::refuse_together(*communicator_, "Specimen::load", source.name(), found);
    const bool in_place =
        options.template_kind == Snapshot::live && options.staging == LoadOptions::Staging::none;
    StateDict filled;
    try {
        sim::agree(*communicator_, purpose + ": read state", [&] {
            filled = state_dict(in_place ? Snapshot::live : Snapshot::owned);
            fill(filled, source, options);
        });
    } catch (...) {
        if (in_place && options.load_states) {
            mark_torn();
        }
        throw;
    }
    adopt(purpose, filled, options);
}

void Specimen::load_state_dict(const StateDict& saved) {
    const std::string purpose = "Specimen::load_state_dict of state dict";
    std::vector<optim::Mismatch> found;
    sim::agree(*communicator_, purpose + ": check", [&] { found = check_dict(saved); });
    optim::refuse_together(*communicator_, "Specimen::load_state_dict", "state dict", found);
    adopt(purpose, saved, {});
}

void Specimen::fill(StateDict& into, StateSource& source, const LoadOptions& options) const {
    if (options.load_args) {
        into.param_groups = source.param_groups();
    }
    if (!options.load_states) {
        return;
    }
    std::vector<std::pair<std::string, Dict>> present;
    for (auto& [fqn, leaves] : into.state) {
        const std::vector<SourceEntry> entries = source.entries(fqn);
        if (entries.empty()) {
            continue;
        }
        for (auto& [key_value, value] : leaves.items) {
            const std::string& key = *key_value.get_if<std::string>();
            const auto entry = std::find_if(entries.begin(), entries.end(),
                                            [&](const SourceEntry& e) { return e.key == key; });
            if (entry == entries.end()) {
                value = optim::None{};
            } else if (!entry->is_tensor) {
                value = entry->value;
            } else if (const auto* tensor = value.get_if<Tensor>()) {
                // What a load without size checks does not find keeps the old bytes.
                std::vector<std::byte> bytes = tensor->to_bytes();
                source.read(fqn, key, *tensor, communicator_->rank(), 0, bytes);
                tensor->storage().write(0, bytes);
            }
        }
        present.emplace_back(fqn, std::move(leaves));
    }
    into.state = std::move(present);
}

std::vector<std::string> Specimen::saved_names(const StateDict& saved) const {
    std::vector<std::string> own;
    for (const ParamGroup& group : *groups_) {
        for (const auto& param : group.params) {
            own.push_back(param->name);
        }
    }
    if (!defects_.has(Defect::by_position)) {
        return own;
    }
    std::vector<std::string> by_position;
    for (std::size_t i = 0; i < saved.param_groups.size(); ++i) {
        const std::vector<std::string> names = optim::read_group(saved.param_groups[i], i).names;
        by_position.insert(by_position.end(), names.begin(), names.end());
    }
    by_position.resize(own.size());
    return by_position;
}

/// PyTorch's order of effects: every tensor is cast before anything is replaced, so that a failure
/// up to there leaves the optimizer as it was, on all ranks.
void Specimen::adopt(const std::string& purpose, const StateDict& saved,
                     const LoadOptions& options) {
    std::vector<std::pair<const Parameter*, Incoming>> incoming;
    sim::agree(*communicator_, purpose + ": cast state", [&] {
        if (options.load_states) {
            incoming = cast_all(saved);
        }
    });
    try {
        sim::agree(*communicator_, purpose + ": set state", [&] {
            if (options.load_args) {
                adopt_groups(saved.param_groups);
            }
            for (auto& [param, values] : incoming) {
                settle(*param, state_.at(param->name), values);
            }
        });
    } catch (...) {
        mark_torn();
        throw;
    }
    if (options.load_states) {
        state_torn_ = false;
        if (defects_.has(Defect::reinit_on_load)) {
            zero_state();
        }
    }
}

std::vector<std::pair<const Parameter*, Specimen::Incoming>> Specimen::cast_all(
    const StateDict& saved) const {
    const std::vector<std::string> names = saved_names(saved);
    std::vector<std::pair<const Parameter*, Incoming>> incoming;
    std::size_t position = 0;
    for (const ParamGroup& group : *groups_) {
        for (const auto& param : group.params) {
            const Dict* leaves = saved.find(names[position++]);
            if (find_state(*param) != nullptr) {
                incoming.emplace_back(param.get(), cast(*param, leaves));
            }
        }
    }
    return incoming;
}

Specimen::Incoming Specimen::cast(const Parameter& param, const Dict* saved) const {
    Incoming incoming;
    if (saved == nullptr) {
        return incoming;
    }
    incoming.step = step_tensor(saved->find("step"));
    const bool to_device = defects_.has(Defect::device_cast) || defects_.has(Defect::hook_restore);
    for (std::size_t kind = 0; kind < moment_keys.size(); ++kind) {
        const Value* value = saved->find(moment_keys[kind]);
        const auto* tensor = value == nullptr ? nullptr : value->get_if<Tensor>();
        if (tensor == nullptr) {
            continue;
        }
        incoming.moments[kind] = *tensor;
        if (to_device) {
            auto storage = optim::make_device_storage(*device_, tensor->local_bytes(), stream_,
                                                      param.name + "." + moment_keys[kind]);
            storage->write(0, tensor->to_bytes());
            incoming.moments[kind] =
                Tensor(tensor->dtype(), tensor->local_shape(), std::move(storage), tensor->shard());
        }
    }
    return incoming;
}

void Specimen::settle(const Parameter& param, ParamState& state, Incoming& incoming) {
    if (defects_.has(Defect::alias_on_load) && incoming.step.defined()) {
        state.step = incoming.step;
    } else {
        const bool restarts = defects_.has(Defect::step_restarts) || !incoming.step.defined();
        set_step(state.step, restarts ? 0 : step_value(incoming.step));
    }
    for (std::size_t kind = 0; kind < moment_keys.size(); ++kind) {
        if (state.moments[kind].defined()) {
            settle_moment(param, kind, state.moments[kind], incoming.moments[kind]);
        }
    }
}

void Specimen::settle_moment(const Parameter& param, std::size_t kind, Tensor& live,
                             Tensor& incoming) {
    if (!incoming.defined()) {
        if (defects_.has(Defect::stale_moments)) {
            live = zero_moment(param, kind);
        } else {
            live.storage().write(0, std::vector<std::byte>(live.local_bytes()));
        }
        return;
    }
    const bool on_device = incoming.memory() == sim::MemoryKind::device;
    const bool fits = live.local_shape() == incoming.local_shape();
    if (defects_.has(Defect::hook_restore)) {
        live = zero_moment(param, kind);
    } else if (on_device ? defects_.has(Defect::cast_stays) : defects_.has(Defect::alias_on_load)) {
        live = incoming;
    } else if (on_device || defects_.has(Defect::stale_moments) || !fits) {
        Tensor fresh = new_moment(param, kind, incoming);
        fresh.storage().write(0, incoming.to_bytes());
        live = std::move(fresh);
    } else if (live.storage_ptr() != incoming.storage_ptr()) {
        live.storage().write(0, incoming.to_bytes());
    }
    incoming = {};
}

void Specimen::adopt_groups(const std::vector<Dict>& saved) {
    if (defects_.has(Defect::stale_groups)) {
        groups_ = std::make_shared<std::vector<ParamGroup>>(*groups_);
    }
    for (std::size_t i = 0; i < saved.size(); ++i) {
        ParamGroup& live = (*groups_)[i];
        ParamGroup group = optim::read_group(saved[i], i).group;
        live.options = group.options;
        live.extra = std::move(group.extra);
    }
}

}  // namespace swaplab::harness
