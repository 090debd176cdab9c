#pragma once

/// The numbers of the zip container, as far as PyTorch's archives use it (APPNOTE 6.3.9, sections
/// 4.3 and 4.5). All fields are little-endian.

#include <cstdint>
#include <string>

namespace swaplab::harness::zip {

constexpr std::uint32_t local_signature = 0x04034b50;
constexpr std::uint32_t central_signature = 0x02014b50;
constexpr std::uint32_t descriptor_signature = 0x08074b50;
constexpr std::uint32_t end64_signature = 0x06064b50;
constexpr std::uint32_t locator64_signature = 0x07064b50;
constexpr std::uint32_t end_signature = 0x06054b50;

constexpr std::uint64_t local_bytes = 30;
constexpr std::uint64_t central_bytes = 46;
constexpr std::uint64_t end64_bytes = 56;
constexpr std::uint64_t locator64_bytes = 20;
constexpr std::uint64_t end_bytes = 22;
constexpr std::uint64_t longest_comment = 65535;

constexpr std::uint16_t extra_zip64 = 0x0001;
constexpr std::uint16_t extra_padding = 0x4246;  ///< "FB", PyTorch's alignment filler
constexpr std::uint32_t saturated32 = 0xffffffff;
constexpr std::uint16_t saturated16 = 0xffff;

/// Appends the `width` low bytes of `value`.
inline void put(std::string& out, std::uint64_t value, int width) {
    for (int i = 0; i < width; ++i) {
        out += static_cast<char>((value >> (8 * i)) & 0xffU);
    }
}

}  // namespace swaplab::harness::zip
