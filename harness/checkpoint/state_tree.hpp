#pragma once

/// PyTorch's flattening of nested state dicts into keys, and its inverse.

#include "swaplab/optim/value.hpp"

#include <memory>
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

/// One part of a path as keys join it.
[[nodiscard]] std::string text_of_part(const optim::Value& part);

/// Puts leaves into nested dicts and lists; a list position that no leaf names becomes None.
class TreeBuilder {
  public:
    /// Lists have at most `most_items` items.
    explicit TreeBuilder(std::size_t most_items);
    ~TreeBuilder();

    /// False when the place is taken by a leaf or a container of another kind.
    [[nodiscard]] bool put(const std::vector<optim::Value>& path, optim::Value value);
    [[nodiscard]] optim::Value take() &&;

  private:
    struct Node;
    std::size_t most_items_;
    std::unique_ptr<Node> root_;
};

}  // namespace swaplab::harness
