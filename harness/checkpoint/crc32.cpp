#include "checkpoint/crc32.hpp"

#include <libdeflate.h>

namespace swaplab::harness {

std::uint32_t crc32_update(std::uint32_t crc, std::span<const std::byte> bytes) noexcept {
    return libdeflate_crc32(crc, bytes.data(), bytes.size());
}

}  // namespace swaplab::harness
