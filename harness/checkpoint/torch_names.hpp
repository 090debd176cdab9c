#pragma once

/// How PyTorch's files name element types.

#include "swaplab/sim/dtype.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace swaplab::harness {

/// "FloatStorage", ... as torch.save names it; empty for dtypes that have no storage class.
[[nodiscard]] std::string_view storage_class_of(sim::DType dtype) noexcept;
/// Inverse, from the full global "torch FloatStorage".
[[nodiscard]] std::optional<sim::DType> dtype_of_storage_global(std::string_view global) noexcept;
/// From the full global "torch float32".
[[nodiscard]] std::optional<sim::DType> dtype_of_global(std::string_view global) noexcept;

}  // namespace swaplab::harness
