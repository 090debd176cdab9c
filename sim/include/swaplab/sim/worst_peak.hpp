#pragma once

/// The most bytes that one recorded run can occupy under any schedule.
///
/// A schedule may run operations in any order that keeps the order edges. What has run at one
/// moment is therefore a set that holds every operation's predecessors, and each such set is what
/// some schedule has run at some moment. The worst peak is the largest sum of weights over these
/// sets: a maximum-weight closure, which one minimum cut finds (J. C. Picard, "Maximal closure of a
/// graph and applications to combinatorial problems", 1976). No schedule needs to be tried.
///
/// The result is a proof for programs whose operations do not depend on timing, and only as good as
/// the edges: a missing edge makes it too large, an edge that the device does not keep too small.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace swaplab::sim {

/// `before` has run whenever `after` runs. Both are indices of operations.
struct OrderEdge {
    std::uint32_t before = 0;
    std::uint32_t after = 0;
    friend bool operator==(const OrderEdge&, const OrderEdge&) = default;
};

/// Operations and their order. Edges that follow from others, and repeated ones, may be left out.
struct PeakGraph {
    /// By operation: what running it adds to the occupied bytes. An allocation adds its size, the
    /// free of it takes as much, everything else adds 0.
    std::vector<std::int64_t> weight_bytes;
    std::vector<OrderEdge> edges;
};

struct WorstPeak {
    std::int64_t bytes = 0;
    /// A legal order of all operations that reaches `bytes`; otherwise as the operations are
    /// numbered, as far as the edges allow it.
    std::vector<std::uint32_t> order;
    /// How many operations of `order` have run when the peak is reached: as few as reach it.
    std::size_t operations_at_peak = 0;

    /// The operation that reaches the peak, always one of weight > 0. None when nothing is ever
    /// occupied.
    [[nodiscard]] std::optional<std::uint32_t> operation() const {
        return operations_at_peak == 0 ? std::nullopt
                                       : std::optional(order[operations_at_peak - 1]);
    }
};

/// The worst peak of `graph`; equal graphs give equal results. Needs no device and no other thread.
/// Throws ArgumentError with fields `operation`, `before` and `after`, `weight_bytes`: for an edge
/// to an operation that does not exist, for edges that form a cycle, and for weights whose sum
/// leaves 64 bits.
[[nodiscard]] WorstPeak worst_peak(const PeakGraph& graph);

}  // namespace swaplab::sim
