#include "replay_resume.hpp"

#include <algorithm>

namespace swaplab::oracle {
namespace {

constexpr std::size_t warm_steps = 3;        // of an optimizer that "stepped" before it loads
constexpr std::size_t steps_after_save = 2;  // of one that loads "in_process"

/// make_resume.py has these in its text and does not write them into the file.
optim::AdamWOptions other_hyper_parameters(bool amsgrad) {
    optim::AdamWOptions options;
    options.lr = 5e-2;
    options.beta1 = 0.8;
    options.beta2 = 0.95;
    options.eps = 1e-6;
    options.weight_decay = 0;
    options.amsgrad = amsgrad;
    return options;
}

/// Both hold a tensor under `key`, and in the same memory.
bool shares_leaf(const optim::Dict& a, const optim::Dict& b, const std::string& key) {
    const Value* mine = a.find(key);
    const Value* theirs = b.find(key);
    const auto* ours = mine == nullptr ? nullptr : mine->get_if<optim::Tensor>();
    const auto* other = theirs == nullptr ? nullptr : theirs->get_if<optim::Tensor>();
    return ours != nullptr && other != nullptr && same_memory(*ours, *other);
}

std::vector<std::string> shared_keys(const optim::Dict& a, const optim::Dict& b) {
    std::vector<std::string> shared;
    for (const char* key : {"exp_avg", "exp_avg_sq", "max_exp_avg_sq", "step"}) {
        if (shares_leaf(a, b, key)) {
            shared.emplace_back(key);
        }
    }
    return shared;
}

bool moments_are_live(const optim::Optimizer& optimizer) {
    const optim::StateDict shown = optimizer.state_dict(optim::Snapshot::live);
    const optim::StateDict used = optimizer.step_state();
    for (const auto& [name, leaves] : moments_of(shown)) {
        for (const auto& leaf : leaves) {
            const optim::Dict* other = used.find(name);
            if (other == nullptr || !shares_leaf(*shown.find(name), *other, leaf.first)) {
                return false;
            }
        }
    }
    return true;
}

bool group_is_live(optim::Optimizer& optimizer) {
    double& lr = optimizer.param_groups().at(0).options.lr;
    const double before = lr;
    lr = before + 1;
    const bool seen = read_options(optimizer.step_state().param_groups.at(0)).lr == lr;
    lr = before;
    return seen;
}

std::vector<std::string> sorted_keys(const optim::Dict& leaves) {
    std::vector<std::string> keys;
    for (const auto& item : leaves.items) {
        keys.push_back(text(item.first));
    }
    std::sort(keys.begin(), keys.end());
    return keys;
}

}  // namespace

ResumeData read_resume_data(const Value& file) {
    ResumeData data;
    data.shapes = read_shapes(at(file, "shapes"));
    data.initial = read_full(at(file, "initial_params"), data.shapes);
    for (const Value& one : items(at(file, "gradients"))) {
        data.gradients.push_back(read_full(one, data.shapes));
    }
    for (const Value& one : items(at(file, "other_gradients"))) {
        data.other_gradients.push_back(read_full(one, data.shapes));
    }
    return data;
}

const std::vector<std::string>& resume_kinds() {
    static const std::vector<std::string> kinds{"fresh",
                                                "fresh_other_hp",
                                                "stepped",
                                                "disk",
                                                "in_process",
                                                "self_load",
                                                "in_process_live_dict",
                                                "two_from_one_live_dict"};
    return kinds;
}

Resume::Resume(const ResumeData& data, const optim::AdamWOptions& options, std::size_t n)
    : data_(data), n_(n) {
    model_.shapes = data.shapes;
    model_.groups = {{{}, options}};
    for (const auto& entry : data.shapes) {
        model_.groups[0].names.push_back(entry.first);
    }
}

Trace Resume::uninterrupted(const Variant& variant, std::size_t count, const Edit& edit) const {
    Trace trace;
    on_ranks(1, [&](sim::Device& device, sim::Communicator& communicator) {
        Run run(device, communicator, model_, variant, data_.initial);
        train(run);
        trace = follow(run, count, edit).trace;
    });
    return trace;
}

Resumed Resume::resumed(const Variant& variant, const std::string& kind, std::size_t count,
                        const Edit& edit) const {
    Resumed result;
    on_ranks(1, [&](sim::Device& device, sim::Communicator& communicator) {
        Run run(device, communicator, model_, variant, data_.initial);
        train(run);
        const bool same = kind.starts_with("in_process") || kind == "self_load";
        result = same ? into_itself(run, variant, kind, count, edit)
                      : into_another(run, device, communicator, variant, kind, count, edit);
    });
    return result;
}

Resumed Resume::into_another(Run& first, sim::Device& device, sim::Communicator& communicator,
                             const Variant& variant, const std::string& kind, std::size_t count,
                             const Edit& edit) const {
    const Values at_n = first.entry().params;
    ModelSpec model = model_;
    if (kind == "fresh_other_hp") {
        model.groups[0].options = other_hyper_parameters(model.groups[0].options.amsgrad);
    }
    Run second(device, communicator, model, variant, kind == "stepped" ? data_.initial : at_n);
    for (std::size_t i = 0; kind == "stepped" && i < warm_steps; ++i) {
        second.step(data_.other_gradients.at(i));
    }
    second.set_params(at_n);
    if (kind != "two_from_one_live_dict") {
        second.optimizer().load_state_dict(
            optim::state_dict_from_value(optim::to_value(first.optimizer().state_dict())));
        return follow(second, count, edit);
    }
    second.optimizer().load_state_dict(first.optimizer().state_dict(optim::Snapshot::live));
    SharedDict dict;
    const optim::StateDict source = first.optimizer().state_dict(optim::Snapshot::live);
    const optim::StateDict target = second.optimizer().state_dict(optim::Snapshot::live);
    const std::string& name = data_.shapes.at(0).first;
    dict.source_keys = sorted_keys(*source.find(name));
    dict.shared = shared_keys(*source.find(name), *target.find(name));
    const Entry before = second.entry();
    first.step(data_.other_gradients.at(0));
    const Entry after = second.entry();
    dict.target_changed = !same_entry(before, after) || !same_moments(before.shown, after.shown);
    Resumed result = follow(second, count, edit);
    result.dict = std::move(dict);
    return result;
}

Resumed Resume::into_itself(Run& run, const Variant& variant, const std::string& kind,
                            std::size_t count, const Edit& edit) const {
    const Values at_n = run.entry().params;
    // PyTorch's state_dict() is live. Ours is a snapshot on purpose; only specimens imitate it.
    const bool live = kind != "in_process" && variant.what == Variant::Class::specimen;
    const optim::StateDict saved =
        run.optimizer().state_dict(live ? optim::Snapshot::live : optim::Snapshot::owned);
    for (std::size_t i = 0; kind != "self_load" && i < steps_after_save; ++i) {
        run.step(data_.other_gradients.at(i));
    }
    run.set_params(at_n);
    run.optimizer().load_state_dict(saved);
    return follow(run, count, edit);
}

void Resume::train(Run& run) const {
    for (std::size_t t = 0; t < n_; ++t) {
        run.step(data_.gradients.at(t));
    }
}

Resumed Resume::follow(Run& run, std::size_t count, const Edit& edit) const {
    Resumed result;
    result.trace.push_back(run.entry());
    result.group_is_live = group_is_live(run.optimizer());
    result.moments_are_live = moments_are_live(run.optimizer());
    for (std::size_t k = 0; k < count; ++k) {
        if (edit) {
            edit(run.optimizer(), k);
        }
        run.step(data_.gradients.at(n_ + k));
        result.trace.push_back(run.entry());
    }
    return result;
}

}  // namespace swaplab::oracle
