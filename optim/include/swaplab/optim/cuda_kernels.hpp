#pragma once

/// The kernels of this module for CUDA devices: target swaplab::optim_cuda.

namespace swaplab::optim {

/// From now on, optimizers run on CUDA devices, too. Does nothing in a build without CUDA. Threads:
/// any.
void register_cuda_kernels() noexcept;

}  // namespace swaplab::optim
