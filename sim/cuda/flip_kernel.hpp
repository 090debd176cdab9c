#pragma once

/// The flip of injected faults on CUDA.

#include <cstddef>

namespace swaplab::sim {

/// *byte ^= mask on a cudaStream_t.
void launch_flip(std::byte* byte, std::byte mask, void* native_stream);

}  // namespace swaplab::sim
