#pragma once

/// Fingerprints: SHA-256 for data that people compare across tools, and a cheap rolling digest for
/// traces and run results.

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "swaplab/sim/random.hpp"

namespace swaplab::sim {

/// Streaming SHA-256 (FIPS 180-4). Move-only; finish() may be called once.
class Sha256 {
  public:
    Sha256();
    ~Sha256();
    Sha256(Sha256&&) noexcept;
    Sha256& operator=(Sha256&&) noexcept;

    void update(std::span<const std::byte> bytes);
    [[nodiscard]] std::string finish_hex();

  private:
    struct State;
    std::unique_ptr<State> state_;
};

/// Lower-case hex SHA-256 of `bytes`.
[[nodiscard]] std::string sha256_hex(std::span<const std::byte> bytes);

/// Order-dependent 64-bit digest of a sequence of values; equal on every machine and build.
class RollingDigest {
  public:
    void add(std::uint64_t value) noexcept { value_ = hash_mix(value_, value); }
    void add(std::string_view text) noexcept;
    void add(std::span<const std::byte> bytes) noexcept;

    [[nodiscard]] std::uint64_t value() const noexcept { return value_; }
    /// 8 lower-case hex digits, for people.
    [[nodiscard]] std::string short_hex() const;

  private:
    std::uint64_t value_ = 0x9e3779b97f4a7c15ULL;
};

}  // namespace swaplab::sim
