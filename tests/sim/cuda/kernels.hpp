#pragma once

/// Kernels for tests, launched by <<<>>>.

#include <cuda_runtime_api.h>

namespace swaplab::sim {

/// values[i] = values[i] * factor + 1.
void launch_scale(float* values, int count, double factor, cudaStream_t stream);
/// The same through cudaLaunchKernelEx.
cudaError_t launch_scale_ex(float* values, int count, double factor, cudaStream_t stream);
/// *value += 1, of a kernel template with internal linkage.
void launch_increment(int* value, cudaStream_t stream);
/// A kernel without a twin for the host.
void launch_unregistered(int* value, cudaStream_t stream);
/// Launches with `block_threads` threads per block.
void launch_with_threads(unsigned block_threads, cudaStream_t stream);

}  // namespace swaplab::sim
