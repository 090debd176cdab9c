#include "specimens/specimen.hpp"

#include "swaplab/optim/saved_group.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace swaplab::harness {

using optim::Dict;
using optim::Mismatch;
using optim::Parameter;
using optim::ParamGroup;
using optim::SourceEntry;
using optim::StateDict;
using optim::Tensor;
using optim::Value;

namespace {

std::string shape_of(const Value& value) {
    const auto* tensor = value.get_if<Tensor>();
    return tensor == nullptr ? std::string(optim::kind_of(value))
                             : optim::to_string(tensor->global_shape());
}

/// True when every element of the parameter is on this rank, so that a plain tensor is the whole.
bool holds_all(const Tensor& data) {
    return data.local_shape() == data.global_shape();
}

}  // namespace

std::vector<Mismatch> Specimen::check(const optim::StateSource& source,
                                      const optim::LoadOptions& options) const {
    std::vector<Mismatch> found;
    const int rank = communicator_->rank();
    const StateDict wanted = state_dict(optim::Snapshot::live);
    for (const auto& [fqn, leaves] : wanted.state) {
        if (!options.load_states) {
            break;
        }
        const std::vector<SourceEntry> entries = source.entries(fqn);
        if (entries.empty() && !defects_.has(Defect::absent_is_fatal)) {
            continue;
        }
        for (const auto& [key_value, live] : leaves.items) {
            const std::string& key = *key_value.get_if<std::string>();
            const bool there = std::any_of(entries.begin(), entries.end(),
                                           [&](const SourceEntry& e) { return e.key == key; });
            const auto* tensor = live.get_if<Tensor>();
            if (there && tensor != nullptr) {
                for (Mismatch& mismatch : source.check(fqn, key, *tensor, rank)) {
                    found.push_back(std::move(mismatch));
                }
            } else if (!there && !defects_.has(Defect::zero_for_missing)) {
                found.push_back({rank, fqn, key, shape_of(live), "missing", "", {}});
            }
        }
    }
    if (options.load_args) {
        check_groups(source.param_groups(), found);
    }
    return found;
}

std::vector<Mismatch> Specimen::check_dict(const StateDict& saved) const {
    std::vector<Mismatch> found;
    const int rank = communicator_->rank();
    const std::vector<std::string> names = saved_names(saved);
    std::size_t position = 0;
    for (const ParamGroup& group : *groups_) {
        for (const auto& param : group.params) {
            const Dict* leaves = saved.find(names[position++]);
            if (find_state(*param) == nullptr) {
                continue;
            }
            if (leaves == nullptr) {
                if (defects_.has(Defect::absent_is_fatal)) {
                    found.push_back({rank, param->name, "step", "[]", "missing", "", {}});
                }
                continue;
            }
            const std::size_t kinds = group.options.amsgrad ? 3 : 2;
            for (std::size_t kind = 0; kind < kinds; ++kind) {
                const std::string fault = moment_fault(*param, leaves->find(moment_keys[kind]));
                if (!fault.empty()) {
                    found.push_back({rank,
                                     param->name,
                                     moment_keys[kind],
                                     optim::to_string(param->data.global_shape()),
                                     fault,
                                     "",
                                     {}});
                }
            }
            if (leaves->find("step") == nullptr && !defects_.has(Defect::zero_for_missing)) {
                found.push_back({rank, param->name, "step", "[]", "missing", "", {}});
            }
        }
    }
    check_groups(saved.param_groups, found);
    return found;
}

std::string Specimen::moment_fault(const Parameter& param, const Value* value) const {
    if (value == nullptr || value->is_none()) {
        return defects_.has(Defect::zero_for_missing) ? "" : "missing";
    }
    const auto* tensor = value->get_if<Tensor>();
    if (tensor == nullptr || tensor->dtype() != optim::DType::float32) {
        return tensor == nullptr ? std::string(optim::kind_of(*value))
                                 : std::string(sim::short_name_of(tensor->dtype()));
    }
    const bool takes_plain =
        defects_.has(Defect::local_moments) || defects_.has(Defect::plain_accepted);
    const bool plain_part = !tensor->shard() && !holds_all(param.data);
    if (plain_part && !takes_plain) {
        return "plain tensor " + optim::to_string(tensor->local_shape());
    }
    const bool fits = tensor->local_shape() == param.data.local_shape() &&
                      (plain_part || tensor->global_shape() == param.data.global_shape());
    return fits || defects_.has(Defect::shape_unchecked) ? ""
                                                         : optim::to_string(tensor->global_shape());
}

void Specimen::check_groups(const std::vector<Dict>& saved, std::vector<Mismatch>& found) const {
    const int rank = communicator_->rank();
    if (saved.size() != groups_->size()) {
        found.push_back({rank,
                         "",
                         "param_groups",
                         fmt::format("{} groups", groups_->size()),
                         fmt::format("{} groups", saved.size()),
                         "",
                         {}});
        return;
    }
    for (std::size_t i = 0; i < saved.size(); ++i) {
        const ParamGroup& live = (*groups_)[i];
        optim::SavedGroup group = optim::read_group(saved[i], i);
        for (Mismatch& mismatch : group.mismatches) {
            mismatch.rank = rank;
            found.push_back(std::move(mismatch));
        }
        const auto refuse = [&](const char* key, std::string expected, std::string saved_as) {
            found.push_back({rank,
                             "",
                             fmt::format("param_groups.{}.{}", i, key),
                             std::move(expected),
                             std::move(saved_as),
                             "",
                             {}});
        };
        if (group.names.size() != live.params.size()) {
            refuse("params", fmt::format("{} parameters", live.params.size()),
                   fmt::format("{} parameters", group.names.size()));
        }
        if (group.group.options.amsgrad != live.options.amsgrad) {
            refuse("amsgrad", live.options.amsgrad ? "True" : "False",
                   group.group.options.amsgrad ? "True" : "False");
        }
    }
}

}  // namespace swaplab::harness
