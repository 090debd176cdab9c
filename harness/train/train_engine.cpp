#include "swaplab/harness/train_engine.hpp"

#include "train/file_check.hpp"
#include "train/model_load.hpp"
#include "train/save_check.hpp"

#include "swaplab/optim/refusal.hpp"
#include "swaplab/sim/agreement.hpp"
#include "swaplab/sim/mutant.hpp"

#include <fmt/format.h>

#include <optional>

namespace swaplab::harness {

using optim::Dict;
using optim::LoadOptions;
using optim::Mismatch;
using optim::Snapshot;
using optim::StateDict;

namespace {

constexpr std::string_view save_name = "TrainEngine::save_dcp";
constexpr std::string_view load_name = "TrainEngine::load_dcp";

constexpr std::string_view torn_note =
    "parameters or optimizer state may be partly overwritten: load a complete checkpoint before "
    "the next step or save (staging = shadow keeps the old state when a load fails)";

LoadOptions options_of(const LoadRequest& request) {
    LoadOptions options;
    options.staging = request.staging;
    options.load_states = request.load_states;
    options.load_args = request.load_args;
    options.template_kind = request.template_kind;
    return options;
}

}  // namespace

/// One load_dcp: what is opened and checked, and then applied.
struct TrainEngine::Load {
    std::optional<Checkpoint> checkpoint;
    std::optional<TensorReader> reader;
    std::optional<ModelLoad> model;
    std::unique_ptr<optim::StateSource> source;  ///< null: the optimizer's part is not looked at
    LoadOptions options;
    bool shadow = false;
    bool wants_state = false;
    std::string directory;

    /// What an agreement on `phase` is about.
    [[nodiscard]] std::string purpose(std::string_view phase) const {
        return fmt::format("{} of {}: {}", load_name, directory, phase);
    }
};

TrainEngine::TrainEngine(sim::Device& device, sim::Communicator& communicator, Storage& storage,
                         std::vector<optim::ParameterPtr> model, optim::Optimizer& optimizer,
                         EngineOptions options)
    : device_(&device),
      communicator_(&communicator),
      storage_(&storage),
      model_(std::move(model)),
      optimizer_(&optimizer),
      options_(std::move(options)) {}

void TrainEngine::enter(std::string_view phase) const {
    if (options_.on_phase) {
        options_.on_phase(phase);
    }
}

SaveReport TrainEngine::save_dcp(const std::string& directory, const SaveRequest& request) {
    Dict tree;
    StateDict state;
    sim::agree(*communicator_, fmt::format("{} of {}: collect", save_name, directory), [&] {
        refuse_torn(request);
        if (request.model) {
            Dict model;
            for (const optim::ParameterPtr& param : model_) {
                model.set(param->name, param->data);
            }
            tree.set("model", std::move(model));
        }
        if (request.optimizer) {
            state = optimizer_->state_dict(Snapshot::live);
            tree.set("optimizer", optim::to_value(state));
        }
    });
    if (request.optimizer && options_.checks == Checks::full) {
        optim::refuse_together(
            *communicator_, std::string(save_name), directory,
            find_plain_moments(state, optimizer_->param_groups(), communicator_->rank()),
            "give each moment the shard metadata of its parameter (Tensor::shard), then save "
            "again");
    }
    SaveOptions save;
    save.chunk_bytes = options_.chunk_bytes;
    save.on_phase = options_.on_phase;
    save.make_publisher = options_.make_publisher;
    return save_checkpoint(*communicator_, *storage_, directory, tree, save);
}

void TrainEngine::refuse_torn(const SaveRequest& request) const {
    const bool model_torn = model_torn_ || optimizer_->parameters_torn();
    const bool torn = (request.model && model_torn) || (request.optimizer && optimizer_->torn());
    if (torn && !SWAPLAB_MUTANT("engine.save_torn")) {
        throw optim::TornState(
            fmt::format("rank {}: {} refused: {} are half overwritten by a load or step that "
                        "failed\n  do  load a complete checkpoint first",
                        communicator_->rank(), save_name,
                        model_torn ? "parameters" : "moments and steps"),
            {{"operation", std::string(save_name)},
             {"rank", fmt::format("rank {}", communicator_->rank())}});
    }
}

void TrainEngine::load_dcp(const std::string& directory, const LoadRequest& request) {
    Load load;
    load.directory = directory;
    load.options = options_of(request);
    load.shadow = request.staging == LoadOptions::Staging::shadow;
    load.wants_state = request.optimizer && (request.load_states || request.load_args);
    sim::agree(*communicator_, load.purpose("plan"), [&] {
        enter("plan");
        load.checkpoint.emplace(*storage_, directory, options_.checksums);
        load.reader.emplace(*load.checkpoint, options_.checks);
        if (request.model) {
            load.model.emplace(*device_, model_, *load.reader, options_.chunk_bytes);
        }
    });
    validate(load);
    if (load.shadow) {
        apply_shadowed(load);
    } else {
        apply_in_place(load);
    }
    if (request.model) {
        model_torn_ = false;
        optimizer_->set_parameters_torn(false);
    }
}

/// Everything that any rank refuses is known to all before the first byte changes on any.
void TrainEngine::validate(Load& load) {
    std::vector<Mismatch> found;
    sim::agree(*communicator_, load.purpose("validate"), [&] {
        enter("validate");
        if (load.model && !SWAPLAB_MUTANT("engine.model_unchecked")) {
            found = load.model->check();
        }
        if (load.wants_state) {
            check_optimizer(load, found);
        }
    });
    optim::refuse_together(*communicator_, std::string(load_name), load.directory, found);
    sim::agree(*communicator_, load.purpose("prepare"), [&] {
        enter("apply");
        if (load.model) {
            load.model->prepare();
        }
    });
}

void TrainEngine::check_optimizer(Load& load, std::vector<Mismatch>& found) {
    // A source reads the groups when it is made: missing files are refused before.
    std::vector<Mismatch> mismatches;
    if (options_.checks == Checks::full && !SWAPLAB_MUTANT("engine.files_unchecked")) {
        mismatches = find_broken_files(*load.checkpoint, "optimizer.", communicator_->rank());
    }
    if (mismatches.empty()) {
        load.source = make_checkpoint_source(*load.checkpoint, "optimizer", options_.checks);
        if (!SWAPLAB_MUTANT("engine.optimizer_unchecked")) {
            mismatches = optimizer_->check(*load.source, load.options);
        }
    }
    found.insert(found.end(), mismatches.begin(), mismatches.end());
}

void TrainEngine::apply_in_place(Load& load) {
    bool overwrites_parameters = false;
    try {
        // The optimizer goes first: what only reading shows it (a stored step that counts nothing)
        // is refused before a parameter has changed.
        if (load.source) {
            optimizer_->load(*load.source, load.options);
        }
        if (load.model) {
            overwrites_parameters = true;
            sim::agree(*communicator_, load.purpose("read parameters"),
                       [&] { load.model->read(); });
        }
    } catch (...) {
        if (overwrites_parameters) {
            tear();
        } else if (!optimizer_->torn()) {
            throw;
        }
        sim::rethrow_with_note(std::current_exception(), torn_note);
    }
}

void TrainEngine::apply_shadowed(Load& load) {
    if (load.model) {
        sim::agree(*communicator_, load.purpose("read parameters"),
                   [&] { load.model->read_into_shadow(); });
    }
    if (load.source) {
        optimizer_->load(*load.source, load.options);
    }
    if (!load.model) {
        return;
    }
    try {
        sim::agree(*communicator_, load.purpose("write parameters"),
                   [&] { load.model->write_shadow(); });
    } catch (...) {
        tear();
        sim::rethrow_with_note(std::current_exception(), torn_note);
    }
}

/// Parameters may be partly overwritten on any rank: no rank may step or save them.
void TrainEngine::tear() {
    model_torn_ = true;
    if (!SWAPLAB_MUTANT("engine.no_tear")) {
        optimizer_->set_parameters_torn(true);
    }
}

}  // namespace swaplab::harness
