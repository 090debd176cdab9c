#pragma once

/// The seeded source of everything that varies. No other randomness exists in this project.

#include <cstdint>
#include <string_view>

namespace swaplab::sim {

/// The finaliser of SplitMix64: a one-to-one map that spreads every bit of `z` over all.
[[nodiscard]] constexpr std::uint64_t split_mix(std::uint64_t z) noexcept {
    z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27U)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31U);
}

/// A 64-bit mix of its inputs (SplitMix64 finaliser); equal on every machine and build.
[[nodiscard]] constexpr std::uint64_t hash_mix(std::uint64_t a, std::uint64_t b) noexcept {
    constexpr std::uint64_t golden_gamma = 0x9e3779b97f4a7c15ULL;
    return split_mix(split_mix(a + golden_gamma) ^ (b + golden_gamma));
}

/// FNV-1a over the bytes of `text`, then mixed; equal on every machine and build.
[[nodiscard]] std::uint64_t hash_text(std::string_view text) noexcept;

/// SplitMix64. Copyable value; copies continue independently with the same numbers.
class Rng {
  public:
    explicit Rng(std::uint64_t seed) noexcept : state_(seed) {}

    [[nodiscard]] std::uint64_t next() noexcept;

    /// Uniform in [0, bound); `bound` > 0. Unbiased.
    [[nodiscard]] std::uint64_t below(std::uint64_t bound) noexcept;

  private:
    std::uint64_t state_;
};

}  // namespace swaplab::sim
