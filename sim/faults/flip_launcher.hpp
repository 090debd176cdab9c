#pragma once

/// How a bit of device memory is flipped on devices that run no host bodies.

#include <cstddef>
#include <functional>

namespace swaplab::sim {

using FlipLauncher = void (*)(std::byte* byte, std::byte mask, void* native_stream);

/// By backends, before their devices are used. Threads: any.
void register_flip_launcher(FlipLauncher launcher) noexcept;
/// For Kernel::cuda_launcher; empty where none is registered.
[[nodiscard]] std::function<void(void*)> flip_launcher(std::byte* byte, std::byte mask);

}  // namespace swaplab::sim
