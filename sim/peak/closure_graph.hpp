#pragma once

/// The graphs in which closed sets are sought.

#include "swaplab/sim/worst_peak.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace swaplab::sim {

/// The predecessors of every node, in one array.
class Predecessors {
  public:
    Predecessors() = default;
    /// Those that `edges` name, for nodes below `node_count`.
    Predecessors(std::size_t node_count, std::span<const OrderEdge> edges);

    [[nodiscard]] std::size_t node_count() const noexcept { return starts_.size() - 1; }
    [[nodiscard]] std::span<const std::uint32_t> of(std::uint32_t node) const noexcept {
        return {nodes_.data() + starts_[node], nodes_.data() + starts_[node + 1]};
    }

  private:
    std::vector<std::uint32_t> starts_{0};
    std::vector<std::uint32_t> nodes_;
};

/// Weighted nodes, each with a larger number than its predecessors. A set of nodes is closed when
/// it holds the predecessors of all its nodes.
struct ClosureGraph {
    std::vector<std::int64_t> weights;
    Predecessors predecessors;

    [[nodiscard]] std::uint32_t size() const noexcept {
        return static_cast<std::uint32_t>(weights.size());
    }
};

}  // namespace swaplab::sim
