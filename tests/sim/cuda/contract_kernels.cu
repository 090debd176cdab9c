#include "contract_kernels.hpp"

#include "swaplab/sim/cuda/standin.hpp"
#include "swaplab/sim/error.hpp"

namespace swaplab::sim {
namespace {

__global__ void add(unsigned char* bytes, std::uint64_t count, int amount) {
    const std::uint64_t stride = std::uint64_t{gridDim.x} * blockDim.x;
    for (std::uint64_t i = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count;
         i += stride) {
        bytes[i] = static_cast<unsigned char>(bytes[i] + amount);
    }
}

const KernelRegistration add_registration(add, [](unsigned char* bytes, std::uint64_t count,
                                                  int amount) {
    const ByteRange range{bytes, count};
    return Kernel{"add",
                  {range},
                  {range},
                  [=](const DeviceAccess& access) {
                      unsigned char* const found = access.at(bytes);
                      for (std::uint64_t i = 0; i < count; ++i) {
                          found[i] = static_cast<unsigned char>(found[i] + amount);
                      }
                  },
                  {}};
});

__global__ void breaking() {
    asm("trap;");
}

const KernelRegistration breaking_registration(breaking, [] {
    return Kernel{"breaking", {}, {}, [](const DeviceAccess&) { throw DeviceError("trap"); }, {}};
});

}  // namespace

Kernel cuda_add_kernel(std::byte* pointer, std::uint64_t bytes, int amount) {
    const ByteRange range{pointer, bytes};
    return {"add", {range}, {range}, {}, [=](void* stream) {
                add<<<4, 128, 0, static_cast<cudaStream_t>(stream)>>>(
                    reinterpret_cast<unsigned char*>(pointer), bytes, amount);
            }};
}

Kernel cuda_breaking_kernel() {
    return {"broken", {}, {}, {}, [](void* stream) {
                breaking<<<1, 1, 0, static_cast<cudaStream_t>(stream)>>>();
            }};
}

}  // namespace swaplab::sim
