/// In builds without a CUDA toolkit there are no kernels to register.

#include "swaplab/optim/cuda_kernels.hpp"

namespace swaplab::optim {

void register_cuda_kernels() noexcept {}

}  // namespace swaplab::optim
