#include "simulated/accelerator.hpp"

#include "swaplab/sim/mutant.hpp"
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
                 [this](const Work& work) { execute(work); }),
      touch_watch_(arena_.user(), arena_.bytes(), *this) {}

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
    find_pending_work();
    scheduler_.run_all();
    find_leaks();
    events_.for_each([this](const EventState& event) { find_unwaited(event); });
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

Accelerator::StreamState* Accelerator::find_stream(StreamRef stream) noexcept {
    return &stream.device() == this ? streams_.find(stream.handle()) : nullptr;
}

Accelerator::StreamState& Accelerator::stream_state(StreamRef stream, const Caller& caller) {
    StreamState* state = find_stream(stream);
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

TraceEvent Accelerator::trace_event(std::string operation, const StreamState& stream,
                                    const Range& range) const {
    TraceEvent event = trace_event(std::move(operation), stream);
    if (range.allocation != nullptr) {
        event.tag = range.allocation->tag;
        event.offset_bytes = range.offset_bytes;
        event.bytes = range.bytes;
    }
    return event;
}

Touch Accelerator::issue(StreamState& stream, TraceEvent event, Work work, CallSite site,
                         Epoch after) {
    const Touch touch{scheduler_.next_epoch(stream.lane), log_.add(std::move(event), site)};
    stream.clock.join(host_);
    stream.clock.advance(touch.epoch);
    scheduler_.issue(stream.lane, {touch.operation, after, std::move(work)});
    return touch;
}

void Accelerator::use(const StreamState& stream, Touch touch, std::span<const Use> uses) {
    for (const Use& each : uses) {
        check_use(touch, each, stream.clock);
    }
    for (const Use& each : uses) {
        Shadow& shadow = each.range.allocation->shadow;
        const Span span{each.range.offset_bytes, each.range.offset_bytes + each.range.bytes};
        each.access == Access::read ? shadow.read(span, touch) : shadow.write(span, touch);
    }
    newest_data_[touch.epoch.lane] = touch;
}

void Accelerator::check_use(Touch touch, const Use& use, const VectorClock& clock) {
    const Allocation& allocation = *use.range.allocation;
    const Span span{use.range.offset_bytes, use.range.offset_bytes + use.range.bytes};
    const auto conflict = use.access == Access::read
                              ? allocation.shadow.conflict_of_read(span, clock)
                              : allocation.shadow.conflict_of_write(span, clock);
    if (conflict && !SWAPLAB_MUTANT("sim.race_unchecked")) {
        find_conflict(FindingKind::race, *conflict, touch.operation, allocation);
    }
    if (use.access != Access::read || SWAPLAB_MUTANT("sim.unwritten_unchecked")) {
        return;
    }
    if (const auto unwritten = allocation.shadow.unwritten(span)) {
        find_unwritten(*unwritten, touch.operation, allocation);
    }
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
