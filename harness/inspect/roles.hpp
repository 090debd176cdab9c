#pragma once

/// What the keys of a checkpoint are for, told from their names.

#include "swaplab/optim/sharding.hpp"

#include <functional>
#include <map>
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

/// Shapes of parameters by key, and where they come from.
class KnownShapes {
  public:
    using Entry = std::pair<std::string, optim::Shape>;
    /// `source`: file or directory of --against; empty: the directory itself.
    KnownShapes(std::string source, std::vector<Entry> shapes);

    [[nodiscard]] const std::string& source() const noexcept { return source_; }
    /// The key that is `fqn` or ends in ".fqn"; of several the ones with the shortest prefix. Null
    /// when there is none, when those differ in shape, and for the integer ids of raw dicts unless
    /// the key equals them.
    [[nodiscard]] const Entry* find(std::string_view fqn) const;

  private:
    struct Match {
        std::size_t entry = 0;
        bool ambiguous = false;
    };
    void add_ending(std::string_view ending, std::size_t entry);

    std::string source_;
    std::vector<Entry> shapes_;
    /// By what a key is from one of its parts on: for "model.a.b" that, "a.b" and "b".
    std::map<std::string, Match, std::less<>> by_ending_;
};

}  // namespace swaplab::harness
