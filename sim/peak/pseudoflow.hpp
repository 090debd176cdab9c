#pragma once

/// Maximum-weight closure by Hochbaum's pseudoflow algorithm.

#include "peak/closure_graph.hpp"

#include <vector>

namespace swaplab::sim {

/// The smallest of the heaviest closed sets of `graph` (they have a smallest one: the intersection
/// of two is as heavy). By node, true for its members. The sum of the positive weights must fit
/// into 64 bits, and so must that of the negative ones.
[[nodiscard]] std::vector<bool> heaviest_closed_set(const ClosureGraph& graph);

}  // namespace swaplab::sim
