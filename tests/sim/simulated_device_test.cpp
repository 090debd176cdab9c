#include "swaplab/sim/simulated_device.hpp"

#include "device_contract.hpp"

namespace swaplab::sim {
namespace {

template <Schedule schedule>
struct SimulatedDeviceMaker {
    static std::unique_ptr<Device> make(std::uint64_t capacity_bytes) {
        return make_simulated_device({.capacity_bytes = capacity_bytes, .schedule = schedule});
    }
};
INSTANTIATE_TYPED_TEST_SUITE_P(Fifo, DeviceContract, SimulatedDeviceMaker<Schedule::fifo>);
INSTANTIATE_TYPED_TEST_SUITE_P(Random, DeviceContract, SimulatedDeviceMaker<Schedule::random>);
INSTANTIATE_TYPED_TEST_SUITE_P(Latest, DeviceContract, SimulatedDeviceMaker<Schedule::latest>);

TEST(SimulatedDevice, SchedulesAreFoundByName) {
    for (const Schedule schedule : {Schedule::fifo, Schedule::random, Schedule::latest}) {
        EXPECT_EQ(schedule_from_name(name_of(schedule)), schedule);
    }
    EXPECT_EQ(schedule_from_name("soon"), std::nullopt);
}

TEST(SimulatedDevice, NothingRunsBeforeTheHostWaits) {
    const auto device = make_simulated_device({});
    const Stream stream(*device, "stream");
    const DeviceBuffer memory(*device, 4, stream, "memory");
    device->fill_async(memory.data(), std::byte{1}, 4, stream);
    EXPECT_NE(*device->inspect(memory.data()), std::byte{1});
    device->synchronize(stream.ref());
    EXPECT_EQ(*device->inspect(memory.data()), std::byte{1});
}

TEST(SimulatedDevice, LatestRunsOnlyWhatIsWaitedFor) {
    const auto device = make_simulated_device({.schedule = Schedule::latest});
    const Stream needed(*device, "needed");
    const Stream unneeded(*device, "unneeded");
    const DeviceBuffer memory(*device, 256, needed, "memory");
    const DeviceBuffer idle(*device, 256, unneeded, "idle");
    device->fill_async(idle.data(), std::byte{1}, 256, unneeded);
    device->fill_async(memory.data(), std::byte{2}, 256, needed);
    device->synchronize(needed.ref());
    EXPECT_EQ(*device->inspect(memory.data()), std::byte{2});
    EXPECT_NE(*device->inspect(idle.data()), std::byte{1});
}

}  // namespace
}  // namespace swaplab::sim
