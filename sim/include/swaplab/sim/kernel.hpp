#pragma once

/// A kernel launch as a value: its name, the bytes it touches, and its bodies.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace swaplab::sim {

/// `bytes` bytes of device (or pinned) memory from `pointer` on.
struct ByteRange {
    const void* pointer = nullptr;
    std::uint64_t bytes = 0;
};

/// Turns device addresses into addresses that host code may use, for the host body of a kernel.
/// Valid only while that body runs.
class DeviceAccess {
  public:
    explicit DeviceAccess(std::ptrdiff_t alias_offset_bytes) noexcept
        : alias_offset_bytes_(alias_offset_bytes) {}

    /// The executor's alias of `device_pointer`, which must lie in one of the kernel's ranges.
    template <class T>
    [[nodiscard]] T* at(T* device_pointer) const noexcept {
        // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast)
        return reinterpret_cast<T*>(reinterpret_cast<std::intptr_t>(device_pointer) +
                                    alias_offset_bytes_);
    }

  private:
    std::ptrdiff_t alias_offset_bytes_;
};

/// One launch. Ranges must cover everything the body touches: the simulated accelerator checks them
/// for validity and races, and poisons nothing outside them.
struct Kernel {
    std::string name;               ///< "adamw", for traces and findings
    std::vector<ByteRange> reads;   ///< device memory only
    std::vector<ByteRange> writes;  ///< device memory only; read-modify-write ranges in both lists
    /// Runs when the simulated accelerator executes the launch, not when it is issued. Must own
    /// everything it needs (captures by value) and must not call the device.
    std::function<void(const DeviceAccess&)> host_body;
    /// Set where a CUDA launcher exists: called at issue with the native stream.
    std::function<void(void* native_stream)> cuda_launcher;
};

}  // namespace swaplab::sim
