#pragma once

/// Makes a closure problem smaller before it is solved.

#include "peak/closure_graph.hpp"

#include <cstdint>
#include <limits>
#include <vector>

namespace swaplab::sim {

/// Which nodes without weight join others. `unless_made_of_gains`: all but those in which gains and
/// losses cancel out, so that no set grows by them.
enum class ZeroWeights : std::uint8_t { unless_made_of_gains, always };

/// A graph in which nodes that go together are one, turned round: edges point the other way,
/// weights have the other sign, numbers run from the other end. What is outside the smallest
/// heaviest closed set of the one graph is the largest heaviest closed set of the other; two
/// contractions give a graph of the first kind.
struct Contraction {
    static constexpr std::uint32_t settled = std::numeric_limits<std::uint32_t>::max();

    ClosureGraph reversed;
    /// By old node: its node in `reversed`, or `settled` when it is in the set that is sought.
    std::vector<std::uint32_t> new_node;
};

/// Joins each node that can only gain with its only predecessor: wherever that one is, it is as
/// well. Without predecessors it is settled. A sum may in turn gain and join the next one.
///
/// With ZeroWeights::unless_made_of_gains the smallest heaviest closed set keeps all its nodes of
/// positive weight (others follow from them); with `always` the largest one keeps all its nodes.
[[nodiscard]] Contraction contract_gains(ClosureGraph graph, ZeroWeights zero_weights);

}  // namespace swaplab::sim
