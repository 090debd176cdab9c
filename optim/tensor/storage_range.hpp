#pragma once

/// The one bounds check of all tensor storages.

#include "swaplab/sim/assert.hpp"

#include <fmt/format.h>

#include <cstdint>

namespace swaplab::optim {

/// Asserts that [offset_bytes, offset_bytes + count_bytes) lies inside a storage of `total_bytes`.
inline void check_range(std::uint64_t offset_bytes, std::uint64_t count_bytes,
                        std::uint64_t total_bytes) {
    SWAPLAB_ASSERT(offset_bytes <= total_bytes && count_bytes <= total_bytes - offset_bytes,
                   fmt::format("bytes [{}, {}) of a storage of {}", offset_bytes,
                               offset_bytes + count_bytes, total_bytes));
}

}  // namespace swaplab::optim
