#include "cuda/write_kernel.hpp"

#include "swaplab/sim/cuda/standin.hpp"

#include <algorithm>
#include <cstring>

namespace swaplab::sim {
namespace {

/// Kernels take at most 4 KiB of arguments on every GPU.
struct Block {
    unsigned bytes;
    unsigned char values[4000];
};

__global__ void write(unsigned char* target, Block block) {
    for (unsigned at = threadIdx.x; at < block.bytes; at += blockDim.x) {
        target[at] = block.values[at];
    }
}

const KernelRegistration registration(write, [](unsigned char* target, const Block& block) {
    return Kernel{"write",
                  {},
                  {{target, block.bytes}},
                  [=](const DeviceAccess& access) {
                      std::memcpy(access.at(target), block.values, block.bytes);
                  },
                  {}};
});

}  // namespace

void launch_write(std::byte* target, std::span<const std::byte> bytes, void* native_stream) {
    constexpr unsigned threads = 256;
    Block block{};
    for (std::size_t done = 0; done < bytes.size(); done += block.bytes) {
        block.bytes = static_cast<unsigned>(std::min(sizeof block.values, bytes.size() - done));
        std::memcpy(block.values, bytes.data() + done, block.bytes);
        write<<<1, threads, 0, static_cast<cudaStream_t>(native_stream)>>>(
            reinterpret_cast<unsigned char*>(target + done), block);
    }
}

}  // namespace swaplab::sim
