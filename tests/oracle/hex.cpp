#include "hex.hpp"

#include "swaplab/sim/error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstdint>

namespace swaplab::oracle {
namespace {

constexpr std::size_t digits = 8;

float float_from(std::string_view text) {
    std::uint32_t bits = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), bits, 16);
    if (text.size() != digits || error != std::errc{} || end != text.data() + text.size()) {
        throw sim::ArgumentError("expected 8 hex digits, found \"" + std::string(text) + "\"");
    }
    return std::bit_cast<float>(bits);
}

}  // namespace

std::vector<float> floats_from_tokens(std::string_view text) {
    std::vector<float> values;
    while (!text.empty()) {
        const std::size_t space = std::min(text.find(' '), text.size());
        values.push_back(float_from(text.substr(0, space)));
        text.remove_prefix(std::min(space + 1, text.size()));
    }
    return values;
}

std::vector<float> floats_from_hex(std::string_view text) {
    std::vector<float> values;
    for (std::size_t i = 0; i < text.size(); i += digits) {
        values.push_back(float_from(text.substr(i, digits)));
    }
    return values;
}

std::string hex_of(const std::vector<float>& values) {
    std::string text;
    for (const float value : values) {
        text += fmt::format("{:08x}", std::bit_cast<std::uint32_t>(value));
    }
    return text;
}

bool same_float(float a, float b) noexcept {
    return (std::isnan(a) && std::isnan(b)) ||
           std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b);
}

bool same_floats(const std::vector<float>& a, const std::vector<float>& b) noexcept {
    return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), same_float);
}

bool is_near(float found, float expected, double largest_summand, double spacings) {
    if (std::isnan(expected) || std::isnan(found) || std::isinf(expected) || std::isinf(found)) {
        return (std::isnan(expected) && std::isnan(found)) || expected == found;
    }
    const auto scale = static_cast<float>(std::min(std::fabs(largest_summand), 3.4e38));
    const double spacing =
        static_cast<double>(std::nextafter(scale, HUGE_VALF)) - static_cast<double>(scale);
    return std::fabs(static_cast<double>(found) - static_cast<double>(expected)) <=
           spacings * spacing;
}

}  // namespace swaplab::oracle
