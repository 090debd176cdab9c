#include "scenario/play/held_memory.hpp"

#include "swaplab/sim/error.hpp"

#include <fmt/format.h>

#include <utility>

namespace swaplab::harness::scenario {

void HeldMemory::hold(const HoldStep& step, const UnitValues& units, sim::Device& device,
                      sim::Device& faulty, sim::StreamRef stream) {
    const std::int64_t amount = step.bytes.value(units).value_or(0);
    if (amount <= 0) {
        throw sim::ArgumentError(
            fmt::format("hold \"{}\": {} is no number of bytes above 0 on this rank", step.name,
                        step.bytes.text),
            {{"operation", "hold"}, {"key", step.name}, {"found", step.bytes.text}});
    }
    const auto bytes = static_cast<std::uint64_t>(amount);
    Buffers buffers;
    if (step.outside_pool) {
        buffers.outside = std::make_unique<Outside>(device, bytes, stream, step.name);
    } else if (step.memory == sim::MemoryKind::device) {
        buffers.device = sim::DeviceBuffer(faulty, bytes, stream, step.name);
    } else if (step.memory == sim::MemoryKind::pinned) {
        buffers.pinned = sim::PinnedBuffer(faulty, bytes, step.name);
    } else {
        buffers.host = sim::HostBuffer(faulty, bytes, step.name);
    }
    held_.insert_or_assign(step.name, std::move(buffers));
}

}  // namespace swaplab::harness::scenario
