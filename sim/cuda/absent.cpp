/// In place of the CUDA backend, in builds without a CUDA toolkit.

#include "swaplab/sim/cuda/cuda_device.hpp"

namespace swaplab::sim {

CudaAvailability cuda_available() {
    return {false,
            "this build has no CUDA backend; configure it with -DSWAPLAB_CUDA=ON, which needs a "
            "CUDA toolkit 13.0 or later (-DCUDAToolkit_ROOT=DIR names one)"};
}

std::unique_ptr<CudaDevice> make_cuda_device(const CudaDeviceOptions&) {
    throw DeviceError(cuda_available().text, {{"expected", "SWAPLAB_CUDA=ON"}});
}

std::function<void(void*)> cuda_write_launcher(void*, std::vector<std::byte>) {
    return {};
}

}  // namespace swaplab::sim
