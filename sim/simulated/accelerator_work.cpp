/// Streams, events, and the work that they order.

#include "simulated/accelerator.hpp"

#include "swaplab/sim/mutant.hpp"

#include <fmt/format.h>

#include <array>
#include <utility>

namespace swaplab::sim {

StreamRef Accelerator::create_stream(std::string_view name) {
    const LaneId lane = scheduler_.open(name, host_);
    return {*this, streams_.add({lane, host_})};
}

void Accelerator::destroy_stream(StreamRef stream) noexcept {
    scheduler_.close(stream_state(stream, {"destroy_stream", {}}).lane);
    streams_.remove(stream.handle());
}

EventRef Accelerator::create_event() {
    return {*this, events_.add({})};
}

void Accelerator::destroy_event(EventRef event) noexcept {
    find_unwaited(event_state(event, {"destroy_event", {}}));
    events_.remove(event.handle());
}

void Accelerator::copy_async(void* destination, const void* source, std::uint64_t bytes,
                             CopyDirection direction, StreamRef stream, CallSite site) {
    static constexpr const char* names[] = {"copy h2d", "copy d2h", "copy d2d"};
    const Caller caller{names[static_cast<std::size_t>(direction)], site};
    StreamState& state = stream_state(stream, caller);
    if (bytes == 0) {
        return;
    }
    const bool to_host = direction == CopyDirection::device_to_host;
    const bool from_host = direction == CopyDirection::host_to_device;
    const Range to = to_host ? pinned_range(destination, bytes, caller)
                             : device_range(destination, bytes, caller);
    const Range from =
        from_host ? pinned_range(source, bytes, caller) : device_range(source, bytes, caller);
    TraceEvent event = trace_event(std::string(caller.operation), state, from_host ? from : to);
    event.direction = direction;
    const std::ptrdiff_t distance = arena_.alias_distance_bytes();
    const Touch touch =
        issue(state, std::move(event),
              CopyWork{static_cast<std::byte*>(destination) + (to_host ? 0 : distance),
                       static_cast<const std::byte*>(source) + (from_host ? 0 : distance), bytes},
              site);
    use(state, touch, std::array{Use{from, Access::read}, Use{to, Access::write}});
}

void Accelerator::fill_async(void* destination, std::byte value, std::uint64_t bytes,
                             StreamRef stream, CallSite site) {
    const Caller caller{"fill", site};
    StreamState& state = stream_state(stream, caller);
    if (bytes == 0) {
        return;
    }
    const Range range = device_range(destination, bytes, caller);
    const Touch touch =
        issue(state, trace_event("fill", state, range),
              FillWork{static_cast<std::byte*>(destination) + arena_.alias_distance_bytes(), value,
                       bytes},
              site);
    use(state, touch, std::array{Use{range, Access::write}});
}

void Accelerator::launch(Kernel kernel, StreamRef stream, CallSite site) {
    const std::string name = "launch " + kernel.name;
    const Caller caller{name, site};
    StreamState& state = stream_state(stream, caller);
    std::vector<Use> uses;
    for (const ByteRange& read : kernel.reads) {
        if (read.bytes != 0) {
            uses.push_back({device_range(read.pointer, read.bytes, caller), Access::read});
        }
    }
    for (const ByteRange& write : kernel.writes) {
        if (write.bytes != 0) {
            uses.push_back({device_range(write.pointer, write.bytes, caller), Access::write});
        }
    }
    const Touch touch =
        issue(state, trace_event(name, state, uses.empty() ? Range{} : uses.front().range),
              KernelWork{std::move(kernel.name), std::move(kernel.host_body)}, site);
    use(state, touch, uses);
}

void Accelerator::record(EventRef event, StreamRef stream, CallSite site) {
    const Caller caller{"record", site};
    EventState& mark = event_state(event, caller);
    StreamState& state = stream_state(stream, caller);
    const Epoch epoch = issue(state, trace_event("record", state), Marker{}, site).epoch;
    if (SWAPLAB_MUTANT("sim.second_record_ignored") && mark.mark.sequence != 0) {
        return;
    }
    mark.mark = epoch;
    mark.clock = state.clock;
    mark.site = site;
}

void Accelerator::wait(StreamRef stream, EventRef event, CallSite site) {
    const Caller caller{"wait", site};
    StreamState& state = stream_state(stream, caller);
    EventState& mark = event_state(event, caller);
    mark.awaited = true;
    if (mark.mark.sequence == 0 || SWAPLAB_MUTANT("sim.wait_ignored")) {
        return;
    }
    state.clock.join(mark.clock);
    issue(state, trace_event("wait", state), Marker{}, site, mark.mark);
}

void Accelerator::await(EventState& event) {
    if (!SWAPLAB_MUTANT("sim.synchronize_ignored")) {
        scheduler_.run_until(event.mark, event.clock);
    }
    host_.join(event.clock);
    release_pinned();
}

void Accelerator::synchronize(EventRef event, CallSite site) {
    EventState& mark = event_state(event, {"synchronize", site});
    mark.awaited = true;
    if (mark.mark.sequence == 0) {
        return;
    }
    log_.add({"synchronize", scheduler_.name(mark.mark.lane), {}, 0, 0, {}}, site);
    await(mark);
}

bool Accelerator::query(EventRef event, CallSite site) {
    EventState& mark = event_state(event, {"query", site});
    mark.awaited = true;
    if (mark.mark.sequence == 0) {
        return true;
    }
    if (!scheduler_.has_run(mark.mark)) {
        scheduler_.run_towards(mark.clock);
    }
    if (!scheduler_.has_run(mark.mark)) {
        return false;
    }
    await(mark);
    return true;
}

void Accelerator::host_access(const void* pointer, std::uint64_t bytes, Access access,
                              CallSite site) {
    const char* name = access == Access::read ? "host read" : "host write";
    if (bytes == 0) {
        return;
    }
    const Range range = pinned_range(pointer, bytes, {name, site});
    const Allocation& allocation = *range.allocation;
    const std::uint64_t id =
        log_.add({name, {}, allocation.tag, range.offset_bytes, bytes, {}}, site);
    const Span span{range.offset_bytes, range.offset_bytes + bytes};
    const auto conflict = access == Access::read ? allocation.shadow.conflict_of_read(span, host_)
                                                 : allocation.shadow.conflict_of_write(span, host_);
    if (conflict && !SWAPLAB_MUTANT("sim.host_access_unchecked")) {
        find_conflict(FindingKind::race, *conflict, id, allocation);
    }
}

}  // namespace swaplab::sim
