#pragma once

/// How often boxes cover the elements of a tensor.

#include "swaplab/optim/sharding.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

namespace swaplab::harness {

struct Coverage {
    std::int64_t elements = 0;  ///< of the tensor
    /// copies -> elements that lie in exactly that many boxes; no entry is 0.
    std::map<int, std::int64_t> copies;
    bool complete = true;  ///< false: so many borders cross that the counts stop early
    std::optional<optim::Box> first_gap;      ///< in row-major order; a box no box covers
    std::optional<optim::Box> first_overlap;  ///< a box that two or more boxes cover

    [[nodiscard]] std::int64_t covered() const;
    [[nodiscard]] std::int64_t covered_twice_or_more() const;
};

/// `boxes` must have the rank of `shape` and lie inside it.
[[nodiscard]] Coverage cover(const optim::Shape& shape, const std::vector<optim::Box>& boxes);

/// Whether `box` has the rank of `shape` and lies inside it.
[[nodiscard]] bool is_inside(const optim::Box& box, const optim::Shape& shape);

}  // namespace swaplab::harness
