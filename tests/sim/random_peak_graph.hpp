#pragma once

/// Random graphs and random legal orders of them for the tests of worst_peak().

#include "swaplab/sim/random.hpp"
#include "swaplab/sim/worst_peak.hpp"

#include <cstdint>
#include <vector>

namespace swaplab::sim {

/// 0 to `operations_max` operations under shuffled numbers, with any density of edges, chains among
/// them. Either free weights (small ones, so that ties occur) or allocations, each with its later
/// free, among operations without weight.
[[nodiscard]] PeakGraph random_peak_graph(Rng& rng, std::uint32_t operations_max);

/// Any legal order of the operations of `graph`.
[[nodiscard]] std::vector<std::uint32_t> random_order(Rng& rng, const PeakGraph& graph);

/// Occupied bytes after each operation of `order`; throws std::logic_error if it is not legal.
[[nodiscard]] std::vector<std::int64_t> occupied_along(const PeakGraph& graph,
                                                       const std::vector<std::uint32_t>& order);

}  // namespace swaplab::sim
