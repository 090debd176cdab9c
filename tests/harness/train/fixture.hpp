#pragma once

/// A training run with its engine, for the tests of this folder.

#include "support/training.hpp"

#include "swaplab/harness/train_engine.hpp"
#include "swaplab/optim/swap_adamw.hpp"

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace swaplab::testing {

/// Uneven, one element, none: ranks 2 and 3 of 4 are short or empty.
inline const std::vector<optim::Placement> rows{optim::Placement::shard(0)};
inline const std::vector<support::ParamSpec> engine_specs{
    {"a", {5, 3}, rows}, {"b", {7}, rows}, {"c", {1}, rows}, {"d", {0}, rows}};

using MakeOptimizer = std::function<std::unique_ptr<optim::Optimizer>(
    sim::Device&, sim::Communicator&, std::vector<optim::ParamGroup>)>;

[[nodiscard]] std::unique_ptr<optim::Optimizer> make_swap_adamw(
    sim::Device& device, sim::Communicator& communicator, std::vector<optim::ParamGroup> groups);
/// A specimen with these defects.
[[nodiscard]] MakeOptimizer specimen_with(std::vector<std::string> defects);

/// One rank: two groups (a, c) and (b, d), an optimizer, an engine.
struct EngineRun {
    support::Trainer rig;
    std::unique_ptr<optim::Optimizer> optimizer;
    harness::TrainEngine engine;

    EngineRun(sim::Communicator& communicator, harness::Storage& storage,
              const harness::EngineOptions& options = {},
              const MakeOptimizer& make = make_swap_adamw, bool amsgrad = false,
              const std::vector<support::ParamSpec>& specs = engine_specs);
    /// Steps first..last; b has no gradient before step 3.
    void train(std::int64_t first, std::int64_t last);
};

/// Everything that a refused load must leave alone, as text: parameters, moments, steps, groups,
/// addresses of moments, bytes in use.
[[nodiscard]] std::string fingerprint(EngineRun& run);

/// Global values by name ("a", "a.exp_avg", "a.step"), assembled over the ranks; equal on all.
[[nodiscard]] std::map<std::string, std::vector<float>> global_state(
    sim::Communicator& communicator, EngineRun& run);

}  // namespace swaplab::testing
