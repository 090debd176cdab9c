#pragma once

/// The kernels of the device contract on CUDA.

#include "swaplab/sim/kernel.hpp"

#include <cstddef>
#include <cstdint>

namespace swaplab::sim {

/// Adds `amount` to every byte.
[[nodiscard]] Kernel cuda_add_kernel(std::byte* pointer, std::uint64_t bytes, int amount);
/// Fails as it runs. The process can use no GPU afterwards.
[[nodiscard]] Kernel cuda_breaking_kernel();

}  // namespace swaplab::sim
