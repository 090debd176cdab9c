#pragma once

/// Byte literals and the one way this project prints counts and amounts of memory.

#include <cstdint>
#include <string>
#include <string_view>

namespace swaplab::sim {

inline namespace literals {
constexpr std::uint64_t operator""_B(unsigned long long n) noexcept { return n; }
constexpr std::uint64_t operator""_KiB(unsigned long long n) noexcept { return n << 10U; }
constexpr std::uint64_t operator""_MiB(unsigned long long n) noexcept { return n << 20U; }
constexpr std::uint64_t operator""_GiB(unsigned long long n) noexcept { return n << 30U; }
}  // namespace literals

/// `value` rounded up to the next multiple of `alignment` (a power of two). Both in the same unit.
constexpr std::uint64_t round_up(std::uint64_t value, std::uint64_t alignment) noexcept {
    return (value + alignment - 1) & ~(alignment - 1);
}

/// "32832" -> "32,832".
std::string with_thousands(std::uint64_t value);

/// "1 file", "1,200 files"; `many` where an s at the end does not make it.
std::string count_of(std::uint64_t count, std::string_view one, std::string_view many = {});

/// "32,832 B"; from 1 MiB on also "33,554,432 B (32.0 MiB)".
std::string format_bytes(std::uint64_t bytes);

}  // namespace swaplab::sim
