#include "faults/flip_launcher.hpp"

#include <atomic>

namespace swaplab::sim {
namespace {

std::atomic<FlipLauncher> registered{nullptr};

}  // namespace

void register_flip_launcher(FlipLauncher launcher) noexcept {
    registered = launcher;
}

std::function<void(void*)> flip_launcher(std::byte* byte, std::byte mask) {
    const FlipLauncher launcher = registered;
    if (launcher == nullptr) {
        return {};
    }
    return [=](void* native_stream) { launcher(byte, mask, native_stream); };
}

}  // namespace swaplab::sim
