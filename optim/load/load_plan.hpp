#pragma once

/// Loading: what a source holds for a table of parameters, checked and then planned.

#include "table/param_table.hpp"

#include "swaplab/optim/optimizer.hpp"
#include "swaplab/sim/communicator.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace swaplab::optim {

/// One rank's call of an optimizer's load.
struct LoadCall {
    std::string operation;  ///< "SwapAdamW::load"
    StateSource& source;
    const LoadOptions& options;
    sim::Communicator& communicator;

    /// Collective: sim::agree() on `phase` ("check") of this call.
    void agree(const std::string& phase, const std::function<void()>& work,
               sim::CallSite site = sim::CallSite::here()) const;
    /// "SwapAdamW::load of state dict: PHASE"
    [[nodiscard]] std::string purpose(const std::string& phase) const;
};

/// Everything that rank `table.rank()` would refuse about `source`. Reads no payload.
[[nodiscard]] std::vector<Mismatch> check_source(const StateSource& source,
                                                 const LoadOptions& options,
                                                 const ParamTable& table);

/// What a load will write, fixed before the first byte changes.
struct LoadPlan {
    /// By ParamId: the restored step; empty where the source has no state, which then is that of a
    /// parameter never stepped.
    std::vector<std::optional<std::int64_t>> steps;
    std::vector<ParamGroup> groups;  ///< options and extra keys only; empty without load_args
};

/// Collective. Checks the source on all ranks, reads the steps and compares them across ranks.
/// Throws CheckpointRejected on all ranks when any of them found something.
[[nodiscard]] LoadPlan make_load_plan(const LoadCall& call, const ParamTable& table);

/// Writes the hyper-parameters of `plan` into the groups of `table`.
void apply_groups(const LoadPlan& plan, ParamTable& table);
/// Writes the steps of `plan` into the counters of `table`.
void apply_steps(const LoadPlan& plan, ParamTable& table);

}  // namespace swaplab::optim
