#include "cuda/flip_kernel.hpp"

#include "swaplab/sim/cuda/standin.hpp"

namespace swaplab::sim {
namespace {

__global__ void flip(unsigned char* byte, unsigned char mask) {
    *byte ^= mask;
}

const KernelRegistration registration(flip, [](unsigned char* byte, unsigned char mask) {
    return Kernel{"flip",
                  {{byte, 1}},
                  {{byte, 1}},
                  [=](const DeviceAccess& access) { *access.at(byte) ^= mask; },
                  {}};
});

}  // namespace

void launch_flip(std::byte* byte, std::byte mask, void* native_stream) {
    flip<<<1, 1, 0, static_cast<cudaStream_t>(native_stream)>>>(
        reinterpret_cast<unsigned char*>(byte), std::to_integer<unsigned char>(mask));
}

}  // namespace swaplab::sim
