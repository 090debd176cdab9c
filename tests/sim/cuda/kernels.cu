#include "kernels.hpp"

#include "swaplab/sim/cuda/standin.hpp"

namespace swaplab::sim {
namespace {

__host__ __device__ float scaled(float value, double factor) {
    return value * static_cast<float>(factor) + 1.0F;
}

__global__ void scale(float* values, int count, double factor) {
    const int stride = static_cast<int>(gridDim.x * blockDim.x);
    for (int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x); i < count; i += stride) {
        values[i] = scaled(values[i], factor);
    }
}

const KernelRegistration scale_registration(scale, [](float* values, int count, double factor) {
    const ByteRange range{values, static_cast<std::uint64_t>(count) * sizeof(float)};
    return Kernel{"scale",
                  {range},
                  {range},
                  [=](const DeviceAccess& access) {
                      float* const found = access.at(values);
                      for (int i = 0; i < count; ++i) {
                          found[i] = scaled(found[i], factor);
                      }
                  },
                  {}};
});

template <class T>
__global__ void increment(T* value) {
    *value += 1;
}

const KernelRegistration increment_registration(increment<int>, [](int* value) {
    return Kernel{"increment",
                  {{value, sizeof(int)}},
                  {{value, sizeof(int)}},
                  [=](const DeviceAccess& access) { *access.at(value) += 1; },
                  {}};
});

__global__ void unregistered(int* value) {
    *value = 0;
}

}  // namespace

void launch_scale(float* values, int count, double factor, cudaStream_t stream) {
    scale<<<2, 64, 0, stream>>>(values, count, factor);
}

cudaError_t launch_scale_ex(float* values, int count, double factor, cudaStream_t stream) {
    cudaLaunchConfig_t config{};
    config.gridDim = dim3(2);
    config.blockDim = dim3(64);
    config.stream = stream;
    return cudaLaunchKernelEx(&config, scale, values, count, factor);
}

void launch_increment(int* value, cudaStream_t stream) {
    increment<int><<<1, 1, 0, stream>>>(value);
}

void launch_unregistered(int* value, cudaStream_t stream) {
    unregistered<<<1, 1, 0, stream>>>(value);
}

void launch_with_threads(unsigned block_threads, cudaStream_t stream) {
    increment<int><<<1, block_threads, 0, stream>>>(nullptr);
}

}  // namespace swaplab::sim
