#pragma once

/// What a program writes to device memory by a kernel, its values being arguments: neither a copy
/// nor a wait of the host.

#include <cstddef>
#include <span>

namespace swaplab::sim {

/// In the order of a cudaStream_t; one launch for every 4,000 bytes.
void launch_write(std::byte* target, std::span<const std::byte> bytes, void* native_stream);

}  // namespace swaplab::sim
