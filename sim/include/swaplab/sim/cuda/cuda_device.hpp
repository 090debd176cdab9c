#pragma once

/// A Device on a GPU, through the CUDA runtime. Names no CUDA type, so that who uses it needs no
/// toolkit; where the project was built without one, it says so.

#include "swaplab/sim/device.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

namespace swaplab::sim {

struct CudaDeviceOptions {
    int rank = 0;     ///< named in errors
    int ordinal = 0;  ///< of the GPU, as the CUDA runtime counts them
    /// What may be charged at once; 0: what the GPU has free when the device is made.
    std::uint64_t capacity_bytes = 0;
    /// Bytes that the device's memory pool keeps for the next allocation when nothing uses them.
    std::uint64_t pool_keeps_bytes = std::numeric_limits<std::uint64_t>::max();
};

/// Work that fails as it runs is a DeviceLost. Its origin is the work issued first of all that is
/// not known to have run (the launch, where only one can fail so); the driver names none.
class CudaDevice : public Device {
  public:
    /// Of the whole GPU, all processes together (cudaMemGetInfo).
    [[nodiscard]] virtual MemoryInfo gpu_memory() const = 0;
    /// Device memory beside the device's pool, as cudaMalloc gives it: nothing that the pool keeps
    /// is used for it. Charged and given back like allocate()'s; giving it back waits for the
    /// device.
    [[nodiscard]] virtual void* allocate_outside_pool(std::uint64_t bytes, StreamRef stream,
                                                      std::string_view tag,
                                                      CallSite site = CallSite::here()) = 0;
    /// Most bytes that the device's memory pool held since the last forget_pool_peak(): what the
    /// GPU had to give for the device bytes on the ledger.
    [[nodiscard]] virtual std::uint64_t pool_peak_bytes() const = 0;
    /// Gives unused pages of the pool back first.
    virtual void forget_pool_peak() = 0;
    /// What device memory holds from `pointer` to the end of its allocation, once all work has run:
    /// for tests and reports. Throws ArgumentError for memory that is not this device's.
    [[nodiscard]] virtual std::vector<std::byte> read_block(const void* pointer) = 0;

  protected:
    using Device::Device;
};

struct CudaAvailability {
    bool usable = false;
    std::string text;  ///< name of the first GPU; or what is missing, and what to do about it
};

/// Whether make_cuda_device() can work here. Throws nothing.
[[nodiscard]] CudaAvailability cuda_available();

/// Throws DeviceError where cuda_available() is not usable, or there is no GPU of that ordinal.
/// Kernels need a cuda_launcher. Each device has a memory pool of its own:
/// others on the same GPU, and the GPU's default pool, are not touched.
[[nodiscard]] std::unique_ptr<CudaDevice> make_cuda_device(const CudaDeviceOptions& options);

/// For the cuda_launcher of a kernel that does nothing but write `bytes` to device memory. They are
/// the arguments of launches: nothing is copied, and the host does not wait.
[[nodiscard]] std::function<void(void*)> cuda_write_launcher(void* target,
                                                             std::vector<std::byte> bytes);

}  // namespace swaplab::sim
