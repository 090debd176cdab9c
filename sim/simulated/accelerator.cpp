#include "simulated/accelerator.hpp"

#include "swaplab/sim/units.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <exception>
#include <utility>

namespace swaplab::sim {
namespace {

/// Holes that streams may not use yet and fragments take addresses, not memory.
constexpr std::uint64_t addresses_per_byte = 4;
constexpr std::uint64_t capacity_bytes_max = std::uint64_t{1} << 43U;

std::uint64_t arena_bytes(const SimulatedDeviceOptions& options) {
    if (options.capacity_bytes > capacity_bytes_max) {
        throw ArgumentError(
            fmt::format("a simulated device of {} is too large; at most {}",
                        format_bytes(options.capacity_bytes), format_bytes(capacity_bytes_max)),
            {{"expected", std::to_string(capacity_bytes_max)},
             {"found", std::to_string(options.capacity_bytes)}});
    }
    return options.capacity_bytes * addresses_per_byte;
}

}  // namespace

std::string_view name_of(Schedule schedule) noexcept {
    switch (schedule) {
        case Schedule::fifo:
            return "fifo";
        case Schedule::random:
            return "random";
        case Schedule::latest:
            return "latest";
    }
    return "fifo";
}

std::optional<Schedule> schedule_from_name(std::string_view name) noexcept {
    for (const Schedule schedule : {Schedule::fifo, Schedule::random, Schedule::latest}) {
        if (name == name_of(schedule)) {
            return schedule;
        }
    }
    return std::nullopt;
}

std::unique_ptr<SimulatedDevice> make_simulated_device(const SimulatedDeviceOptions& options) {
    return std::make_unique<Accelerator>(options);
}

void Accelerator::FreeAligned::operator()(std::byte* memory) const noexcept {
    std::free(memory);
}

Accelerator::Accelerator(const SimulatedDeviceOptions& options)
    : SimulatedDevice(options.rank, ledger_),
      options_(options),
      arena_(arena_bytes(options)),
      address_space_(arena_.bytes()),
      scheduler_(options.schedule, hash_mix(options.seed, static_cast<std::uint64_t>(options.rank)),
                 [this](const Work& work) { execute(work); }) {}

Accelerator::~Accelerator() = default;

MemoryInfo Accelerator::memory_info() const {
    return {options_.capacity_bytes,
            options_.capacity_bytes - ledger_.now(MemoryKind::device, Size::rounded)};
}

const std::byte* Accelerator::inspect(const void* device_pointer) const {
    return static_cast<const std::byte*>(device_pointer) + arena_.alias_distance_bytes();
}

void Accelerator::finish() {
    if (std::exchange(finished_, true)) {
        return;
    }
    scheduler_.run_all();
}

void Accelerator::refuse(const Caller& caller, const std::string& reason,
                         ErrorFields fields) const {
    fields.insert(fields.begin(), {{"rank", fmt::format("rank {}", rank())},
                                   {"operation", std::string(caller.operation)},
                                   {"site", format_site(caller.site)}});
    throw ArgumentError(fmt::format("{} refused: rank {}, {} ({})", caller.operation, rank(),
                                    reason, format_site(caller.site)),
                        std::move(fields));
}

Accelerator::StreamState& Accelerator::stream_state(StreamRef stream, const Caller& caller) {
    StreamState* state = &stream.device() == this ? streams_.find(stream.handle()) : nullptr;
    if (state == nullptr) {
        refuse(caller, "the stream is not a live stream of this device");
    }
    return *state;
}

Accelerator::EventState& Accelerator::event_state(EventRef event, const Caller& caller) {
    EventState* state = &event.device() == this ? events_.find(event.handle()) : nullptr;
    if (state == nullptr) {
        refuse(caller, "the event is not a live event of this device");
    }
    return *state;
}

TraceEvent Accelerator::trace_event(std::string operation, const StreamState& stream) const {
    return {std::move(operation), scheduler_.name(stream.lane), {}, 0, 0, {}};
}

Epoch Accelerator::issue(StreamState& stream, TraceEvent event, Work work, CallSite site,
                         Epoch after) {
    const Epoch epoch = scheduler_.next_epoch(stream.lane);
    stream.clock.join(host_);
    stream.clock.advance(epoch);
    scheduler_.issue(stream.lane, {log_.add(std::move(event), site), after, std::move(work)});
    return epoch;
}

void Accelerator::execute(const Work& work) {
    ExecutionContext context{ledger_, DeviceAccess(arena_.alias_distance_bytes())};
    try {
        run(work, context);
    } catch (const std::exception& error) {
        const std::string name =
            std::holds_alternative<KernelWork>(work) ? std::get<KernelWork>(work).name : "";
        throw DeviceError(fmt::format("rank {}: kernel {} failed: {}", rank(), name, error.what()),
                          {{"rank", fmt::format("rank {}", rank())},
                           {"operation", "launch " + name},
                           {"reason", error.what()}});
    }
}

}  // namespace swaplab::sim
