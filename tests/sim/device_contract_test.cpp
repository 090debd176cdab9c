/// The simulated device, plain and behind the fault wrapper, under the contract of all devices.

#include "device_semantics.hpp"

#include "swaplab/sim/fault_plan.hpp"
#include "swaplab/sim/simulated_device.hpp"

namespace swaplab::sim {
namespace {

struct HostKernels {
    static Kernel add(std::byte* pointer, std::uint64_t bytes, int amount) {
        return add_kernel(pointer, bytes, amount);
    }
    static std::optional<Kernel> breaking() {
        return Kernel{
            "broken", {}, {}, [](const DeviceAccess&) { throw DeviceError("broken"); }, {}};
    }
};

template <Schedule schedule>
struct Plain : HostKernels {
    static std::shared_ptr<Device> make(std::uint64_t capacity_bytes) {
        return make_simulated_device({.capacity_bytes = capacity_bytes, .schedule = schedule});
    }
};
using Makers = ::testing::Types<Plain<Schedule::fifo>, Plain<Schedule::random>,
                                Plain<Schedule::latest>, Plain<Schedule::pct>>;
INSTANTIATE_TYPED_TEST_SUITE_P(Simulated, DeviceContract, Makers);
INSTANTIATE_TYPED_TEST_SUITE_P(Simulated, DeviceSemantics, Makers);

template <AllocationPolicy policy>
struct Pooled : HostKernels {
    static std::shared_ptr<Device> make(std::uint64_t /*capacity_bytes*/) {
        return make_simulated_device({.schedule = Schedule::random, .allocation = policy});
    }
};
using PooledMakers =
    ::testing::Types<Pooled<AllocationPolicy::caching>, Pooled<AllocationPolicy::stream_ordered>>;
INSTANTIATE_TYPED_TEST_SUITE_P(Pools, DeviceSemantics, PooledMakers);

struct Wrapped : HostKernels {
    struct Parts {
        std::unique_ptr<SimulatedDevice> inner;
        FaultInjector injector{0};
        std::unique_ptr<Device> wrapper;
    };
    static std::shared_ptr<Device> make(std::uint64_t capacity_bytes) {
        const auto parts = std::make_shared<Parts>();
        parts->inner =
            make_simulated_device({.capacity_bytes = capacity_bytes, .schedule = Schedule::latest});
        parts->wrapper = make_faulty_device(*parts->inner, parts->injector);
        return {parts, parts->wrapper.get()};
    }
};
INSTANTIATE_TYPED_TEST_SUITE_P(Faulty, DeviceContract, Wrapped);
INSTANTIATE_TYPED_TEST_SUITE_P(Faulty, DeviceSemantics, Wrapped);

}  // namespace
}  // namespace swaplab::sim
