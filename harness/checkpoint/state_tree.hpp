#pragma once

/// PyTorch's flattening of nested state dicts into keys, and its inverse.

#include "swaplab/optim/value.hpp"

#include <string>
#include <vector>

namespace swaplab::harness {

/// One leaf of a state dict.
struct Leaf {
    std::string key;                 ///< the path joined by '.'
    std::vector<optim::Value> path;  ///< strings and ints
    optim::Value value;
};

/// Leaves in order. Dicts are always descended (int keys become texts), lists only when they hold a
/// tensor, a dict or a list that is descended; empty dicts leave nothing. Throws ArgumentError when
/// two leaves have one key.
/// Source: torch.distributed.checkpoint._traverse.traverse_state_dict of PyTorch 2.8.
[[nodiscard]] std::vector<Leaf> flatten(const optim::Value& tree);

/// Puts leaves into nested dicts and lists; a list position that no leaf names becomes None.
class TreeBuilder {
  public:
    explicit TreeBuilder(std::size_t most_items) : most_items_(most_items) {}

    /// False when the place is taken by a leaf or a container of another kind.
    [[nodiscard]] bool put(const std::vector<optim::Value>& path, optim::Value value);
    [[nodiscard]] optim::Value take() && { return std::move(root_); }

  private:
    std::size_t most_items_;
    optim::Value root_ = optim::Dict{};
};

}  // namespace swaplab::harness
