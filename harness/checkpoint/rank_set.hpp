#pragma once

#include <vector>

namespace swaplab::harness {

/// The order in which CPython iterates over a set of small ints that were added in this order.
/// PyTorch's planner takes the first of equals in it: {0, 8} gives 0, {7, 15} gives 15.
/// Source: CPython, Objects/setobject.c (open addressing, 9 linear probes, growth at 3/5 full).
[[nodiscard]] std::vector<int> set_order(const std::vector<int>& ranks);

}  // namespace swaplab::harness
