#include "checkpoint/torch_names.hpp"

#include <array>
#include <utility>

namespace swaplab::harness {
namespace {

using sim::DType;

constexpr std::array<std::pair<DType, std::string_view>, 10> storage_classes{{
    {DType::float32, "FloatStorage"},
    {DType::float64, "DoubleStorage"},
    {DType::float16, "HalfStorage"},
    {DType::bfloat16, "BFloat16Storage"},
    {DType::int64, "LongStorage"},
    {DType::int32, "IntStorage"},
    {DType::int16, "ShortStorage"},
    {DType::int8, "CharStorage"},
    {DType::uint8, "ByteStorage"},
    {DType::boolean, "BoolStorage"},
}};
constexpr std::string_view torch_prefix = "torch ";

}  // namespace

std::string_view storage_class_of(sim::DType dtype) noexcept {
    for (const auto& entry : storage_classes) {
        if (entry.first == dtype) {
            return entry.second;
        }
    }
    return {};
}

std::optional<sim::DType> dtype_of_storage_global(std::string_view global) noexcept {
    if (!global.starts_with(torch_prefix)) {
        return std::nullopt;
    }
    for (const auto& entry : storage_classes) {
        if (entry.second == global.substr(torch_prefix.size())) {
            return entry.first;
        }
    }
    return std::nullopt;
}

std::optional<sim::DType> dtype_of_global(std::string_view global) noexcept {
    if (!global.starts_with(torch_prefix)) {
        return std::nullopt;
    }
    const std::string_view name = global.substr(torch_prefix.size());
    const auto dtype = sim::dtype_from_name(name);
    // dtype_from_name() knows short names too; a pickle may only use PyTorch's own.
    return dtype && sim::name_of(*dtype) == name ? dtype : std::nullopt;
}

}  // namespace swaplab::harness
