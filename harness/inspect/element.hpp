#pragma once

/// Single elements of stored tensors: bit patterns, values, distances.

#include "swaplab/sim/dtype.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace swaplab::harness {

/// The little-endian bits of element `index` of `bytes`.
[[nodiscard]] std::uint64_t bits_at(sim::DType dtype, std::span<const std::byte> bytes,
                                    std::uint64_t index);
/// The number that `bits` stand for (rounded, for integers beyond 2^53).
[[nodiscard]] double value_of_bits(sim::DType dtype, std::uint64_t bits);
[[nodiscard]] bool is_floating(sim::DType dtype) noexcept;
/// Steps from `a` to `b` on the line of representable numbers of a floating dtype; -0 and +0 are
/// the same. Empty for other dtypes and for NaN.
[[nodiscard]] std::optional<std::uint64_t> ulp_distance(sim::DType dtype, std::uint64_t a,
                                                        std::uint64_t b);
/// All digits of the dtype: "3d198ff1" for float32.
[[nodiscard]] std::string hex_bits(sim::DType dtype, std::uint64_t bits);

}  // namespace swaplab::harness
