#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace swaplab::harness {

/// CRC-32 (IEEE) of what `crc` is already the CRC of, followed by `bytes`. Start with 0.
[[nodiscard]] std::uint32_t crc32_update(std::uint32_t crc,
                                         std::span<const std::byte> bytes) noexcept;

}  // namespace swaplab::harness
