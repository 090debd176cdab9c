#pragma once

/// What orders the operations of a recorded run, as edges of a graph.

#include "simulated/clock.hpp"
#include "simulated/operation_log.hpp"

#include "swaplab/sim/worst_peak.hpp"

#include <cstdint>
#include <utility>
#include <vector>

namespace swaplab::sim {

/// Operations become nodes, numbered as they are added. One thread; the log must outlive it.
class OrderEdges {
  public:
    /// `host_waits_done`: that had ended when the part of the run began that is looked at.
    explicit OrderEdges(const OperationLog& log, std::uint64_t host_waits_done = 0)
        : log_(log),
          first_host_wait_(host_waits_done),
          host_waits_(host_waits_done),
          host_{0, {}, host_waits_done} {}

    /// In issue order; of each stream without a gap from the first that is added. Returns the node.
    /// What the host does itself follows what it had waited for, and nothing follows it but more of
    /// the same.
    std::uint32_t add(std::uint64_t id);
    [[nodiscard]] std::vector<OrderEdge> take() noexcept { return std::move(edges_); }

  private:
    struct Lane {
        std::uint64_t first_sequence = 0;
        std::vector<std::uint32_t> nodes;  ///< by sequence, from the first
        std::uint64_t host_waits = 0;      ///< that its last operation follows
    };

    Lane& lane_of(LaneId id);
    void follow_last(const Lane& lane, std::uint32_t node);
    /// What the host has waited for since the last operation of the lane.
    void follow_host(Lane& lane, std::uint32_t node);
    /// No edge where `epoch` is no operation, or one that was not added.
    void follow(Epoch epoch, std::uint32_t node);

    const OperationLog& log_;
    std::uint64_t first_host_wait_;
    std::uint64_t host_waits_;  ///< that had ended when the last operation was issued
    Lane host_;                 ///< of what the host does itself
    std::uint32_t nodes_ = 0;
    std::vector<Lane> lanes_;
    std::vector<OrderEdge> edges_;
};

}  // namespace swaplab::sim
