#pragma once

/// What the keys of a checkpoint are for, told from their names.

#include "swaplab/optim/sharding.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace swaplab::harness {

/// "optimizer.state.layers.0.weight.exp_avg" = prefix "optimizer.state.", fqn, leaf.
struct StateKey {
    std::string prefix;
    std::string fqn;
    std::string leaf;  ///< exp_avg, exp_avg_sq, max_exp_avg_sq or step
    [[nodiscard]] bool is_moment() const noexcept { return leaf != "step"; }
};

/// Empty when `key` is not Adam's state of some parameter.
[[nodiscard]] std::optional<StateKey> state_key(std::string_view key);

/// The rank that wrote a data file: 3 for "__3_0.distcp". Empty for other names.
[[nodiscard]] std::optional<int> writer_of(std::string_view file_name);

/// Shapes of parameters by key, and where they come from.
struct KnownShapes {
    std::string source;  ///< file or directory of --against; empty: the directory itself
    std::vector<std::pair<std::string, optim::Shape>> shapes;

    /// The key that is `fqn` or ends in ".fqn"; of several the ones with the shortest prefix. Null
    /// when there is none, when those differ in shape, and for the integer ids of raw dicts unless
    /// the key equals them.
    [[nodiscard]] const std::pair<std::string, optim::Shape>* find(std::string_view fqn) const;
};

}  // namespace swaplab::harness
