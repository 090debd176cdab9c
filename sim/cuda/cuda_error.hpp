#pragma once

/// What CUDA's codes mean to whoever made the call.

#include <cuda_runtime_api.h>
#include <string>

namespace swaplab::sim {

/// Whether every later call fails, too: the process must be started anew, or the GPU is at fault.
[[nodiscard]] bool loses_device(cudaError_t code) noexcept;
/// Whether only a kernel can have caused it.
[[nodiscard]] bool is_kernel_failure(cudaError_t code) noexcept;
/// "start the process anew; ...". Never empty.
[[nodiscard]] std::string advice(cudaError_t code);
/// "cudaErrorLaunchFailure (719): unspecified launch failure", and more where the library tells.
[[nodiscard]] std::string describe(cudaError_t code);

}  // namespace swaplab::sim
