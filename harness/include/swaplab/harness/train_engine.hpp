#pragma once

/// Saving and loading a whole training run: parameters, optimizer, groups.

#include "swaplab/harness/checkpoint.hpp"
#include "swaplab/optim/optimizer.hpp"
#include "swaplab/sim/communicator.hpp"
#include "swaplab/sim/device.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace swaplab::harness {

struct EngineOptions {
    std::uint64_t chunk_bytes = std::uint64_t{1} << 20U;  ///< one read or staging block
    Checks checks = Checks::full;
    Checksums checksums = Checksums::compared;  ///< of loads
    /// Called as each phase begins: "plan", "stage", "validate", "apply", "publish". A throw from
    /// it fails the operation on all ranks like any other error of that phase.
    std::function<void(std::string_view phase)> on_phase;
    /// See SaveOptions.
    std::function<std::unique_ptr<Publisher>(Storage& storage, const std::string& directory)>
        make_publisher = {};
};

struct SaveRequest {
    bool model = true;
    bool optimizer = true;
};

struct LoadRequest {
    bool model = true;
    bool optimizer = true;
    /// With optimizer: moments and steps; hyper-parameters of the groups. Both off: optimizer state
    /// in the checkpoint is not looked at.
    bool load_states = true;
    bool load_args = true;
    optim::LoadOptions::Staging staging = optim::LoadOptions::Staging::none;
    optim::Snapshot template_kind = optim::Snapshot::owned;
};

/// One rank's training run. Collective: all ranks call save_dcp and load_dcp together. Everything
/// handed in must outlive the engine.
class TrainEngine {
  public:
    TrainEngine(sim::Device& device, sim::Communicator& communicator, Storage& storage,
                std::vector<optim::ParameterPtr> model, optim::Optimizer& optimizer,
                EngineOptions options = {});

    /// Writes {"model": {fqn: tensor}, "optimizer": state_dict} to `directory`. Moments stream from
    /// the live buffers. Refuses what is torn (TornState) and, with Checks::full, a moment that
    /// is a plain tensor while its parameter is sharded (CheckpointRejected): a writer takes such
    /// tensors for replicas and keeps one rank's.
    SaveReport save_dcp(const std::string& directory, const SaveRequest& request = {});

    /// Reads it back, in any world size. Checks parameters and optimizer state first, on all ranks;
    /// throws CheckpointRejected there, naming parameters, keys, shapes and lost shards, before a
    /// byte has changed on any rank. Device memory grows by 0 bytes: parameters are read through
    /// pinned staging of at most chunk_bytes, moments into their own pinned memory.
    ///
    /// An error on one rank ends the load on all, with the same kind of error. Before the phase
    /// "apply" nothing has changed then. During it the optimizer goes first and may still refuse
    /// what only reading shows (a stored step that counts nothing), with nothing changed; after
    /// that, state or parameters may be partly overwritten (the text says so). What may be is torn
    /// on all ranks, also when only the model was loaded: the optimizer refuses to step, and
    /// save_dcp to save it, until a load of it is complete. With staging = shadow both keep their
    /// old bytes, at the price of one host copy.
    void load_dcp(const std::string& directory, const LoadRequest& request = {});

  private:
    struct Load;

    void enter(std::string_view phase) const;
    void refuse_torn(const SaveRequest& request) const;
    void validate(Load& load);
    void check_optimizer(Load& load, std::vector<optim::Mismatch>& found);
    void apply_in_place(Load& load);
    void apply_shadowed(Load& load);
    void tear();

    sim::Device* device_;
    sim::Communicator* communicator_;
    Storage* storage_;
    std::vector<optim::ParameterPtr> model_;
    optim::Optimizer* optimizer_;
    EngineOptions options_;
    bool model_torn_ = false;  ///< parameters partly overwritten by a failed load
};

}  // namespace swaplab::harness
