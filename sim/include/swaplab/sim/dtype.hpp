#pragma once

/// Element types, named as PyTorch names them.

#include <cstdint>
#include <optional>
#include <string_view>

namespace swaplab::sim {

enum class DType : std::uint8_t {
    float32, float64, float16, bfloat16, int8, int16, int32, int64, uint8, boolean,
    uint16, uint32, uint64,
};

/// Bytes of one element.
[[nodiscard]] std::uint64_t size_of(DType dtype) noexcept;

/// PyTorch's name without "torch.": "float32", "bool", ...
[[nodiscard]] std::string_view name_of(DType dtype) noexcept;

/// The short name of reports and scenario files: "fp32", "bf16", "i64", "bool", ...
[[nodiscard]] std::string_view short_name_of(DType dtype) noexcept;

/// Inverse of name_of() and of short_name_of(); empty for anything else.
[[nodiscard]] std::optional<DType> dtype_from_name(std::string_view name) noexcept;

}  // namespace swaplab::sim
