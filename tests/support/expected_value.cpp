#include "support/expected_value.hpp"

#include <bit>
#include <cerrno>
#include <cstdlib>

namespace swaplab::tests {
namespace {

using optim::Value;

std::vector<Value> typed_values(const Json& json) {
    std::vector<Value> values;
    for (const Json& item : json) {
        values.push_back(typed_value(item));
    }
    return values;
}

Value integer_of_decimal(const std::string& text) {
    errno = 0;
    const long long value = std::strtoll(text.c_str(), nullptr, 10);
    return errno == ERANGE ? Value(optim::BigInt{text}) : Value(std::int64_t{value});
}

std::string bytes_of_hex(const std::string& hex) {
    std::string bytes;
    for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
        bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
    }
    return bytes;
}

/// Exact for multiples of 1/64 below 4, which are zero or normal numbers.
std::uint64_t half_bits(double value) {
    const auto single = std::bit_cast<std::uint32_t>(static_cast<float>(value));
    const std::uint32_t exponent = (single >> 23U) & 0xffU;
    const std::uint32_t sign = (single >> 16U) & 0x8000U;
    return exponent == 0 ? sign : sign | ((exponent - 112U) << 10U) | ((single >> 13U) & 0x3ffU);
}

std::uint64_t formula_bits(sim::DType dtype, std::int64_t i, std::int64_t f, std::int64_t k) {
    const std::int64_t n = (37 * i + 11 * (i / 251) + 53 * f + 89 * k + 17) % 251;
    const double base = k < 2 ? static_cast<double>(n - 125) / 64 : static_cast<double>(n + 1) / 64;
    const double fp32 = base + static_cast<double>((i + f) % 4) * 0x1p-16;
    switch (dtype) {
        case sim::DType::float32:
            return std::bit_cast<std::uint32_t>(static_cast<float>(fp32));
        case sim::DType::float64:
            return std::bit_cast<std::uint64_t>(fp32 + static_cast<double>((i + k) % 8) * 0x1p-44);
        case sim::DType::bfloat16:
            return std::bit_cast<std::uint32_t>(static_cast<float>(base)) >> 16U;
        case sim::DType::float16:
            return half_bits(base);
        case sim::DType::uint8:
            return static_cast<std::uint64_t>(n);
        case sim::DType::boolean:
            return static_cast<std::uint64_t>(n % 2);
        default:
            return static_cast<std::uint64_t>(n - 125);
    }
}

}  // namespace

Value typed_value(const Json& json) {
    const std::string kind = json.at("t");
    if (kind == "none") {
        return optim::None{};
    }
    if (kind == "bool") {
        return json.at("v").get<bool>();
    }
    if (kind == "int") {
        return integer_of_decimal(json.at("v"));
    }
    if (kind == "float") {
        return std::strtod(json.at("hex").get<std::string>().c_str(), nullptr);
    }
    if (kind == "str") {
        return json.at("v").get<std::string>();
    }
    if (kind == "bytes") {
        return optim::PyBytes{bytes_of_hex(json.at("hex"))};
    }
    if (kind == "tuple") {
        return optim::Tuple{typed_values(json.at("v"))};
    }
    if (kind == "list") {
        return optim::List{typed_values(json.at("v"))};
    }
    optim::Dict dict;
    dict.ordered_dict = kind == "odict";
    for (const Json& pair : json.at("v")) {
        dict.items.emplace_back(typed_value(pair.at(0)), typed_value(pair.at(1)));
    }
    return dict;
}

Value untyped_value(const Json& json) {
    if (json.is_null()) {
        return optim::None{};
    }
    if (json.is_boolean()) {
        return json.get<bool>();
    }
    if (json.is_number_integer()) {
        return json.get<std::int64_t>();
    }
    if (json.is_number()) {
        return json.get<double>();
    }
    if (json.is_string()) {
        return json.get<std::string>();
    }
    optim::List list;
    for (const Json& item : json) {
        list.items.push_back(untyped_value(item));
    }
    return list;
}

Value without_tuples(const Value& value) {
    const auto* tuple = value.get_if<optim::Tuple>();
    const auto* list = value.get_if<optim::List>();
    if (tuple == nullptr && list == nullptr) {
        return value;
    }
    optim::List result;
    for (const Value& item : tuple != nullptr ? tuple->items : list->items) {
        result.items.push_back(without_tuples(item));
    }
    return result;
}

std::vector<std::byte> formula_bytes(sim::DType dtype, std::int64_t elements,
                                     std::int64_t fqn_index, std::int64_t value_kind) {
    std::vector<std::byte> bytes;
    for (std::int64_t i = 0; i < elements; ++i) {
        const std::uint64_t bits = formula_bits(dtype, i, fqn_index, value_kind);
        for (std::uint64_t b = 0; b < sim::size_of(dtype); ++b) {
            bytes.push_back(static_cast<std::byte>((bits >> (8 * b)) & 0xffU));
        }
    }
    return bytes;
}

}  // namespace swaplab::tests
