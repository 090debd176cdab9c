#pragma once

/// Bit patterns as text: the oracle's two spellings.

#include <string>
#include <string_view>
#include <vector>

namespace swaplab::oracle {

/// "3f800000 40000000": one token per element. Throws sim::ArgumentError.
[[nodiscard]] std::vector<float> floats_from_tokens(std::string_view text);
/// "3f80000040000000": 8 digits per element. Throws sim::ArgumentError.
[[nodiscard]] std::vector<float> floats_from_hex(std::string_view text);
/// Inverse of floats_from_hex().
[[nodiscard]] std::string hex_of(const std::vector<float>& values);

/// Equal bits, any NaN equal to any NaN.
[[nodiscard]] bool same_float(float a, float b) noexcept;
[[nodiscard]] bool same_floats(const std::vector<float>& a, const std::vector<float>& b) noexcept;

/// Whether `found` is within `spacings` float32 spacings, taken at `largest_summand`, of
/// `expected`; infinities and NaN by class.
[[nodiscard]] bool is_near(float found, float expected, double largest_summand, double spacings);

}  // namespace swaplab::oracle
