#include "inspect/element.hpp"

#include "swaplab/sim/assert.hpp"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <cstring>

namespace swaplab::harness {
namespace {

using sim::DType;

struct FloatFormat {
    unsigned bits;
    unsigned mantissa_bits;
};

std::optional<FloatFormat> float_format(DType dtype) noexcept {
    switch (dtype) {
        case DType::float64:
            return FloatFormat{64, 52};
        case DType::float32:
            return FloatFormat{32, 23};
        case DType::float16:
            return FloatFormat{16, 10};
        case DType::bfloat16:
            return FloatFormat{16, 7};
        default:
            return std::nullopt;
    }
}

double half_value(std::uint64_t bits) {
    const auto exponent = static_cast<int>((bits >> 10U) & 31U);
    const auto mantissa = static_cast<double>(bits & 1023U);
    const double sign = (bits & 0x8000U) != 0 ? -1.0 : 1.0;
    if (exponent == 31) {
        return mantissa == 0 ? sign * HUGE_VAL : std::nan("");
    }
    return sign *
           (exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(mantissa + 1024, exponent - 25));
}

template <class T>
double as(std::uint64_t bits) {
    return static_cast<double>(static_cast<T>(bits));
}

/// Position of a float on the line of all floats of its format, zero at 0.
std::int64_t position(FloatFormat format, std::uint64_t bits) {
    const std::uint64_t sign = std::uint64_t{1} << (format.bits - 1);
    const auto magnitude = static_cast<std::int64_t>(bits & (sign - 1));
    return (bits & sign) != 0 ? -magnitude : magnitude;
}

}  // namespace

std::uint64_t bits_at(DType dtype, std::span<const std::byte> bytes, std::uint64_t index) {
    const std::uint64_t size = size_of(dtype);
    SWAPLAB_ASSERT((index + 1) * size <= bytes.size(), "element " + std::to_string(index));
    static_assert(std::endian::native == std::endian::little);
    std::uint64_t bits = 0;
    std::memcpy(&bits, bytes.data() + index * size, size);
    return bits;
}

double value_of_bits(DType dtype, std::uint64_t bits) {
    switch (dtype) {
        case DType::float32:
            return std::bit_cast<float>(static_cast<std::uint32_t>(bits));
        case DType::float64:
            return std::bit_cast<double>(bits);
        case DType::float16:
            return half_value(bits);
        case DType::bfloat16:
            return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16U);
        case DType::int8:
            return as<std::int8_t>(bits);
        case DType::int16:
            return as<std::int16_t>(bits);
        case DType::int32:
            return as<std::int32_t>(bits);
        case DType::int64:
            return as<std::int64_t>(bits);
        case DType::uint8:
        case DType::boolean:
        case DType::uint16:
        case DType::uint32:
        case DType::uint64:
            break;
    }
    return as<std::uint64_t>(bits);
}

bool is_floating(DType dtype) noexcept {
    return float_format(dtype).has_value();
}

std::optional<std::uint64_t> ulp_distance(DType dtype, std::uint64_t a, std::uint64_t b) {
    const auto format = float_format(dtype);
    if (!format || std::isnan(value_of_bits(dtype, a)) || std::isnan(value_of_bits(dtype, b))) {
        return std::nullopt;
    }
    const std::int64_t from = position(*format, a);
    const std::int64_t to = position(*format, b);
    // As unsigned, so that -max to +max does not overflow.
    return from > to ? static_cast<std::uint64_t>(from) - static_cast<std::uint64_t>(to)
                     : static_cast<std::uint64_t>(to) - static_cast<std::uint64_t>(from);
}

std::string hex_bits(DType dtype, std::uint64_t bits) {
    return fmt::format("{:0{}x}", bits, 2 * size_of(dtype));
}

}  // namespace swaplab::harness
