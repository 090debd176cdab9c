#pragma once

/// What scenarios, properties and the train engine need of an optimizer.

#include "swaplab/optim/param_group.hpp"
#include "swaplab/optim/state_dict.hpp"

#include <vector>

namespace swaplab::optim {

/// What a load may be told. Defaults are PyTorch's behaviour with our checks.
struct LoadOptions {
    /// none: read into the live moments; if reading fails half-way, the state is marked torn on all
    /// ranks. shadow: keep the old state until the new one is whole (one copy of the moments in
    /// host memory, on the ledger).
    enum class Staging : std::uint8_t { none, shadow };
    Staging staging = Staging::none;
    bool load_states = true;  ///< moments and steps
    bool load_args = true;    ///< hyper-parameters of the groups
    /// For optimizers that load through a template dict: whether it shares the live buffers.
    Snapshot template_kind = Snapshot::owned;
};

/// One optimizer on one rank. Collective where it says so: all ranks must call together.
class Optimizer {
  public:
    Optimizer() = default;
    Optimizer(const Optimizer&) = delete;
    Optimizer& operator=(const Optimizer&) = delete;
    virtual ~Optimizer() = default;

    /// One update of every parameter with a gradient. Blocks until host state is complete again.
    /// Throws TornState, changing nothing, while torn().
    virtual void step() = 0;

    [[nodiscard]] virtual StateDict state_dict(Snapshot how = Snapshot::owned) const = 0;
    /// What the next step() would really read. Differs from state_dict() only in faulty optimizers.
    [[nodiscard]] virtual StateDict step_state() const { return state_dict(Snapshot::live); }

    /// What this rank would refuse about `source`; empty when nothing. Reads no payload, changes
    /// nothing, calls no collective: load() and train engines agree on the answers of all ranks
    /// before the first byte changes.
    [[nodiscard]] virtual std::vector<Mismatch> check(const StateSource& source,
                                                      const LoadOptions& options) const = 0;
    /// Collective. Replaces state and group values by what `source` holds, or throws
    /// CheckpointRejected on all ranks and changes nothing.
    virtual void load(StateSource& source, const LoadOptions& options = {}) = 0;
    /// Collective. The same from a dict in memory.
    virtual void load_state_dict(const StateDict& saved) = 0;

    /// Live: what is written here is what the next step uses. Groups and their order stay for the
    /// life of the optimizer (add_param_group appends; references are then invalid, indices are
    /// not).
    [[nodiscard]] virtual std::vector<ParamGroup>& param_groups() noexcept = 0;
    /// Collective. Adds a group with parameters that no group has yet; their state is zero, step 0.
    virtual void add_param_group(ParamGroup group) = 0;
    /// Has the optimizer create the state that it may not have yet. Changes no existing state.
    virtual void init_state() {}
    /// True while something that step() would use is half overwritten: moments and steps, after a
    /// load or step that failed half-way and until a complete load; or the parameters.
    [[nodiscard]] virtual bool torn() const noexcept { return false; }
    /// True while the parameters are half overwritten: after a step that failed half-way, or
    /// because an engine said so.
    [[nodiscard]] virtual bool parameters_torn() const noexcept { return false; }
    /// For whoever loads the parameters: they were left half overwritten, or are whole again.
    virtual void set_parameters_torn(bool /*torn*/) noexcept {}
};

}  // namespace swaplab::optim
