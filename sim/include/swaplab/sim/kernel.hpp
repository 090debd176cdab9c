#pragma once

/// Launches and host functions as values: name, the bytes touched, and bodies.

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
    /// Told every address that the body asks for.
    using Asked = std::function<void(const void* device_pointer)>;

    /// `asked` may be nullptr.
    explicit DeviceAccess(std::ptrdiff_t alias_offset_bytes, const Asked* asked = nullptr) noexcept
        : alias_offset_bytes_(alias_offset_bytes), asked_(asked) {}

    /// The executor's alias of `device_pointer`, which must lie in one of the kernel's ranges, or
    /// begin one of 0 bytes.
    template <class T>
    [[nodiscard]] T* at(T* device_pointer) const {
        if (asked_ != nullptr) {
            (*asked_)(device_pointer);
        }
        // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast)
        return reinterpret_cast<T*>(reinterpret_cast<std::intptr_t>(device_pointer) +
                                    alias_offset_bytes_);
    }

  private:
    std::ptrdiff_t alias_offset_bytes_;
    const Asked* asked_;
};

/// One launch. Ranges must cover everything the body touches: the simulated accelerator checks them
/// for validity and races, and finds addresses asked for and bytes changed beside them.
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

/// Host code that runs in the order of a stream.
struct HostFunction {
    std::string name;               ///< for traces and findings
    std::vector<ByteRange> reads;   ///< pinned memory that the body touches, for the race check;
    std::vector<ByteRange> writes;  ///< ordinary memory is not listed
    /// Must own everything it needs, must not throw, and must not call the device: such calls are
    /// refused with an ArgumentError (cudaErrorNotPermitted).
    std::function<void()> body;
};

}  // namespace swaplab::sim
