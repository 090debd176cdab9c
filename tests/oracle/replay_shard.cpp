#include "replay_shard.hpp"

#include "swaplab/harness/train_engine.hpp"
#include "swaplab/sim/error.hpp"

#include <algorithm>
#include <limits>
#include <set>

namespace swaplab::oracle {
namespace {

constexpr std::size_t steps_after = 2;
constexpr const char* directory = "saved";

/// lr and weight_decay of group 0, of further groups, and (below) all values of an optimizer that
/// is built with others are constants of build() in make_shard.py, which no file states.
optim::AdamWOptions options_of_group(std::size_t index, const Value& one) {
    optim::AdamWOptions options;
    options.lr = index == 0 ? 1e-2 : 2e-3;
    options.weight_decay = index == 0 ? 0.1 : 0.0;
    return read_options(one, options);
}

ModelSpec with_other_options(ModelSpec model) {
    for (GroupSpec& group : model.groups) {
        group.options.lr = 5e-2;
        group.options.weight_decay = 0;
        group.options.beta1 = 0.8;
        group.options.beta2 = 0.95;
    }
    return model;
}

void append(Floats& to, const Floats& from) {
    to.insert(to.end(), from.begin(), from.end());
}

/// Puts the ranks' parts, whole rows each, together.
void assemble(SavedRun& saved) {
    for (const Entry& entry : saved.at_n) {
        for (const auto& [name, values] : entry.params) {
            append(saved.full_params[name], values);
        }
        for (const auto& [name, leaves] : entry.used) {
            for (const auto& [key, values] : leaves) {
                append(saved.full_moments[name][key], values);
            }
        }
    }
}

harness::EngineOptions engine_options(harness::Checks checks) {
    harness::EngineOptions options;
    options.checks = checks;
    return options;
}

std::vector<Entry> train_plain_adamw(const ShardCase& one) {
    ModelSpec model = one.model;
    model.world = 1;
    std::vector<Entry> trace;
    on_ranks(1, [&](sim::Device& device, sim::Communicator& communicator) {
        Run run(device, communicator, model, *variant_named("AdamW"), one.initial);
        for (const Values& gradients : one.gradients) {
            run.step(gradients);
        }
        trace.push_back(run.entry());
    });
    return trace;
}

/// The ranks' parameters after the last step are the plain run's rows.
bool equals_plain(const ShardCase& one, const SavedRun& saved) {
    Values joined;
    for (const auto& trace : saved.uninterrupted) {
        for (const auto& [name, values] : trace.back().params) {
            append(joined[name], values);
        }
    }
    Entry ours;
    Entry plain;
    ours.params = joined;
    plain.params = train_plain_adamw(one).back().params;
    return same_entry(ours, plain);
}

/// Fills every moment that a template of the optimizer shows with NaN.
void fill_with_nan(const optim::StateDict& state_dict) {
    for (const auto& [fqn, leaves] : state_dict.state) {
        for (const auto& [key, value] : leaves.items) {
            const auto* tensor = value.get_if<optim::Tensor>();
            if (tensor != nullptr && text(key) != "step") {
                const Floats nan(static_cast<std::size_t>(tensor->local_numel()),
                                 std::numeric_limits<float>::quiet_NaN());
                tensor->storage().write(0, std::as_bytes(std::span(nan)));
            }
        }
    }
}

/// One rank's load and what follows.
class Loader {
  public:
    Loader(const ShardCase& one, const SavedRun& saved, const LoadSpec& spec, int world,
           sim::Device& device, sim::Communicator& communicator)
        : one_(one),
          saved_(saved),
          spec_(spec),
          run_(device, communicator, model_for(world), *variant_named(spec.variant),
               saved.full_params),
          engine_(device, communicator, *saved.storage, run_.params(), run_.optimizer(),
                  engine_options(spec.checks)) {}

    LoadedRun load() {
        LoadedRun result;
        if (spec_.nan_fill) {
            fill_with_nan(run_.optimizer().state_dict(optim::Snapshot::live));
        }
        result.template_aliases = template_aliases();
        const Entry before = run_.entry();
        try {
            load_once();
        } catch (const optim::CheckpointRejected& rejected) {
            result.error = rejected.what();
            result.moments_changed = !same_moments(before.used, run_.entry().used);
            return result;
        }
        result.after = run_.entry();
        if (spec_.nan_fill) {
            return result;
        }
        for (std::size_t k = 0; k < steps_after; ++k) {
            run_.step(one_.gradients.at(one_.n + k));
            result.trace.push_back(run_.entry());
        }
        if (spec_.second_load) {
            run_.set_params(saved_.full_params);
            load_once();
            result.second_after = run_.entry();
            run_.step(one_.gradients.at(one_.n));
            result.second_step = run_.entry();
        }
        return result;
    }

  private:
    [[nodiscard]] ModelSpec model_for(int world) const {
        ModelSpec model = spec_.other_hp ? with_other_options(one_.model) : one_.model;
        model.world = world;
        return model;
    }

    /// As make_shard.py looks at it: at exp_avg of the first parameter.
    [[nodiscard]] bool template_aliases() {
        const std::string& name = one_.model.groups.at(0).names.at(0);
        const optim::StateDict shown = run_.optimizer().state_dict(optim::Snapshot::live);
        const optim::StateDict used = run_.optimizer().step_state();
        const auto moment = [&](const optim::StateDict& state_dict) {
            const optim::Dict* leaves = state_dict.find(name);
            const Value* value = leaves == nullptr ? nullptr : leaves->find("exp_avg");
            return value == nullptr ? nullptr : value->get_if<optim::Tensor>();
        };
        const auto* a = moment(shown);
        const auto* b = moment(used);
        return a != nullptr && b != nullptr && a->local_numel() > 0 && same_memory(*a, *b);
    }

    /// The engine's order: a template that shares the live buffers, read into it, set it.
    void load_once() {
        harness::LoadRequest request;
        request.model = false;
        request.template_kind = optim::Snapshot::live;
        engine_.load_dcp(directory, request);
    }

    const ShardCase& one_;
    const SavedRun& saved_;
    const LoadSpec& spec_;
    Run run_;
    harness::TrainEngine engine_;
};

}  // namespace

ShardCase read_shard_case(const Value& one) {
    ShardCase result;
    result.name = text(at(one, "name"));
    result.variant = text(at(one, "variant"));
    result.n = static_cast<std::size_t>(integer(at(one, "N")));
    result.with_model = flag(at(one, "with_model"));
    result.model.shapes = read_shapes(at(one, "shapes"));
    result.model.world = static_cast<int>(integer(at(one, "world")));
    std::multiset<std::string> grouped;
    for (const Value& group : items(at(one, "groups"))) {
        const auto names = texts(group);
        grouped.insert(names.begin(), names.end());
        result.model.groups.push_back({names, options_of_group(result.model.groups.size(), one)});
    }
    std::multiset<std::string> all;
    for (const auto& entry : result.model.shapes) {
        all.insert(entry.first);
    }
    if (grouped != all) {
        throw sim::ArgumentError("the groups do not hold each parameter once");
    }
    const Value& data = at(one, "data");
    require_keys(data, {"initial_params", "gradients"});
    result.initial = read_full(at(data, "initial_params"), result.model.shapes);
    for (const Value& gradients : items(at(data, "gradients"), result.n + steps_after)) {
        result.gradients.push_back(read_full(gradients, result.model.shapes));
    }
    return result;
}

bool same_run(const SavedRun& a, const SavedRun& b) {
    const auto same_entries = [](const std::vector<Entry>& x, const std::vector<Entry>& y) {
        return std::equal(x.begin(), x.end(), y.begin(), y.end(), same_entry);
    };
    return same_entries(a.at_n, b.at_n) &&
           std::equal(a.uninterrupted.begin(), a.uninterrupted.end(), b.uninterrupted.begin(),
                      b.uninterrupted.end(), same_entries);
}

SavedRun save_run(const ShardCase& one) {
    SavedRun saved;
    saved.storage = harness::make_memory_storage();
    const auto ranks = static_cast<std::size_t>(one.model.world);
    saved.at_n.resize(ranks);
    saved.uninterrupted.resize(ranks);
    on_ranks(one.model.world, [&](sim::Device& device, sim::Communicator& communicator) {
        Run run(device, communicator, one.model, *variant_named(one.variant), one.initial);
        for (std::size_t t = 0; t < one.n; ++t) {
            run.step(one.gradients.at(t));
        }
        const auto rank = static_cast<std::size_t>(communicator.rank());
        saved.at_n[rank] = run.entry();
        harness::TrainEngine engine(device, communicator, *saved.storage, run.params(),
                                    run.optimizer(), engine_options(harness::Checks::none));
        engine.save_dcp(directory, {one.with_model, true});
        for (std::size_t k = 0; k < steps_after; ++k) {
            run.step(one.gradients.at(one.n + k));
            saved.uninterrupted[rank].push_back(run.entry());
        }
    });
    assemble(saved);
    saved.equals_full_adamw = equals_plain(one, saved);
    return saved;
}

std::vector<LoadedRun> load_run(const ShardCase& one, const SavedRun& saved, const LoadSpec& spec,
                                int world) {
    std::vector<LoadedRun> results(static_cast<std::size_t>(world));
    on_ranks(world, [&](sim::Device& device, sim::Communicator& communicator) {
        results[static_cast<std::size_t>(communicator.rank())] =
            Loader(one, saved, spec, world, device, communicator).load();
    });
    return results;
}

Moments cut(const Moments& full, const ModelSpec& model, int rank) {
    Moments local;
    for (const auto& [name, leaves] : full) {
        for (const auto& [key, values] : leaves) {
            local[name][key] = local_rows(values, shape_of(model, name), model.world, rank);
        }
    }
    return local;
}

}  // namespace swaplab::oracle
