#include "swaplab/sim/dtype.hpp"

#include <array>

namespace swaplab::sim {
namespace {

struct Info {
    DType dtype;
    std::uint64_t bytes;
    std::string_view name;
    std::string_view short_name;
};

// Indexed by the enumerators' values.
constexpr std::array<Info, 13> infos{{
    {DType::float32, 4, "float32", "fp32"},
    {DType::float64, 8, "float64", "fp64"},
    {DType::float16, 2, "float16", "fp16"},
    {DType::bfloat16, 2, "bfloat16", "bf16"},
    {DType::int8, 1, "int8", "i8"},
    {DType::int16, 2, "int16", "i16"},
    {DType::int32, 4, "int32", "i32"},
    {DType::int64, 8, "int64", "i64"},
    {DType::uint8, 1, "uint8", "u8"},
    {DType::boolean, 1, "bool", "bool"},
    {DType::uint16, 2, "uint16", "u16"},
    {DType::uint32, 4, "uint32", "u32"},
    {DType::uint64, 8, "uint64", "u64"},
}};

constexpr const Info& info_of(DType dtype) noexcept {
    return infos[static_cast<std::size_t>(dtype)];
}

}  // namespace

std::uint64_t size_of(DType dtype) noexcept { return info_of(dtype).bytes; }
std::string_view name_of(DType dtype) noexcept { return info_of(dtype).name; }
std::string_view short_name_of(DType dtype) noexcept { return info_of(dtype).short_name; }

std::optional<DType> dtype_from_name(std::string_view name) noexcept {
    for (const Info& info : infos) {
        if (info.name == name || info.short_name == name) {
            return info.dtype;
        }
    }
    return std::nullopt;
}

}  // namespace swaplab::sim
