/// CUDA under the contract of all devices: over the stand-in, or on the GPU where the library path
/// leads to the real library.

#include "../device_semantics.hpp"
#include "contract_kernels.hpp"

#include "swaplab/sim/cuda/cuda_device.hpp"
#include "swaplab/sim/cuda/standin.hpp"

namespace swaplab::sim {
namespace {

int devices_alive = 0;

template <Schedule schedule>
struct Cuda {
    static std::shared_ptr<Device> make(std::uint64_t capacity_bytes) {
        int ordinal = 0;
        if (Standin* found = standin()) {
            if (devices_alive == 0) {
                StandinOptions options;
                options.device_count = 2;
                options.device.schedule = schedule;
                options.device.capacity_bytes = std::uint64_t{64} << 20U;
                found->configure(options);
            }
            ordinal = devices_alive;
        }
        std::unique_ptr<CudaDevice> device =
            make_cuda_device({.ordinal = ordinal, .capacity_bytes = capacity_bytes});
        ++devices_alive;
        return {device.release(), [](const Device* mine) {
                    delete mine;
                    --devices_alive;
                }};
    }
    static Kernel add(std::byte* pointer, std::uint64_t bytes, int amount) {
        return cuda_add_kernel(pointer, bytes, amount);
    }
    static std::optional<Kernel> breaking() {
        return standin() != nullptr ? std::optional(cuda_breaking_kernel()) : std::nullopt;
    }
};

using Makers =
    ::testing::Types<Cuda<Schedule::fifo>, Cuda<Schedule::random>, Cuda<Schedule::latest>>;
INSTANTIATE_TYPED_TEST_SUITE_P(Cuda, DeviceContract, Makers);
INSTANTIATE_TYPED_TEST_SUITE_P(Cuda, DeviceSemantics, Makers);

TEST(CudaMemory, OutsideOfThePoolIsChargedAndGivenBackButNeverPooled) {
    if (Standin* found = standin()) {
        found->configure({});
    }
    const auto device = make_cuda_device({.capacity_bytes = std::uint64_t{32} << 20U});
    const Stream stream(*device, "s");
    const std::uint64_t bytes = std::uint64_t{8} << 20U;
    void* outside = device->allocate_outside_pool(bytes, stream, "workspace");
    EXPECT_EQ(device->memory_info().reserved_bytes, bytes);
    EXPECT_EQ(device->pool_peak_bytes(), 0U);
    EXPECT_THROW(static_cast<void>(device->allocate_outside_pool(4 * bytes, stream, "more")),
                 OutOfDeviceMemory);
    device->fill_async(outside, std::byte{1}, bytes, stream);
    device->deallocate(outside, stream);
    EXPECT_EQ(device->memory_info().reserved_bytes, 0U);
    EXPECT_EQ(device->pool_peak_bytes(), 0U);
}

}  // namespace
}  // namespace swaplab::sim
