/// Streams, events, and the work that they order.

#include "simulated/accelerator.hpp"

#include "swaplab/sim/mutant.hpp"

#include <fmt/format.h>

#include <array>
#include <numeric>
#include <utility>

namespace swaplab::sim {

StreamRef Accelerator::create_stream(std::string_view name, StreamKind kind) {
    check_usable({"create_stream", {}});
    const NameId id = log_.names().intern(name);
    return {*this, streams_.add(open(id, kind))};
}

Accelerator::StreamState Accelerator::open(NameId name, StreamKind kind) {
    return {scheduler_.open(name, host_), name, host_, host_version_, kind, ++streams_opened_};
}

void Accelerator::destroy_stream(StreamRef stream, CallSite site) noexcept {
    const Caller caller{"destroy_stream", site};
    StreamState* state = find_stream(stream);
    if (is_reentrant(caller)) {
        return;
    }
    if (state == nullptr || stream.handle() == default_stream_) {
        return find_not_destroyable(state == nullptr ? "dead stream" : "default stream", caller);
    }
    if (state->kind == StreamKind::blocking && !host_.covers(scheduler_.last_epoch(state->lane))) {
        gone_.push_back(end_of(*state));
    }
    if (state->lane < newest_data_.size()) {
        newest_data_[state->lane].destroyed_at = site;
    }
    scheduler_.close(state->lane);
    streams_.remove(stream.handle());
}

StreamRef Accelerator::default_stream() {
    if (!default_stream_) {
        default_stream_ = create_stream("default", StreamKind::blocking).handle();
    }
    return {*this, *default_stream_};
}

void Accelerator::follow_default(StreamState& stream, CallSite site) {
    if (!default_stream_ || stream.kind == StreamKind::non_blocking ||
        SWAPLAB_MUTANT("sim.default_stream_unordered")) {
        return;
    }
    StreamState& default_stream = *streams_.find(*default_stream_);
    if (&stream != &default_stream) {
        return follow(stream, end_of(default_stream), site);
    }
    streams_.for_each([&](const StreamState& other) {
        if (other.kind == StreamKind::blocking) {
            follow(stream, end_of(other), site);
        }
    });
    for (const Mark& mark : std::exchange(gone_, {})) {
        follow(stream, mark, site);
    }
}

void Accelerator::follow(StreamState& stream, const Mark& mark, CallSite site) {
    follow_host(stream);
    if (stream.clock.covers(mark.epoch)) {
        return;
    }
    stream.clock.join(mark.clock);
    OperationRecord record = record_of(OperationKind::wait, site, {});
    record.follow(mark.epoch);
    enqueue(stream, record, Marker{});
}

EventRef Accelerator::create_event() {
    check_usable({"create_event", {}});
    return {*this, events_.add({})};
}

void Accelerator::destroy_event(EventRef event, CallSite site) noexcept {
    const Caller caller{"destroy_event", site};
    const EventState* state = find_event(event);
    if (is_reentrant(caller)) {
        return;
    }
    if (state == nullptr) {
        return find_not_destroyable("dead event", caller);
    }
    find_unwaited(*state, site);
    events_.remove(event.handle());
}

void Accelerator::copy_async(void* destination, const void* source, std::uint64_t bytes,
                             CopyDirection direction, StreamRef stream, CallSite site) {
    static constexpr OperationKind kinds[] = {OperationKind::copy_h2d, OperationKind::copy_d2h,
                                              OperationKind::copy_d2d};
    const OperationKind kind = kinds[static_cast<std::size_t>(direction)];
    const Caller caller{name_of(kind), site};
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
    const std::ptrdiff_t distance = arena_.alias_distance_bytes();
    OperationRecord record = record_of(kind, site, from_host ? from : to);
    const Touch touch =
        issue(state, record,
              CopyWork{static_cast<std::byte*>(destination) + (to_host ? 0 : distance),
                       static_cast<const std::byte*>(source) + (from_host ? 0 : distance), bytes,
                       to_host});
    use(state, touch, std::array{Use{from, Access::read}, Use{to, Access::write}});
    if (to_host) {
        begin_downloads();
    }
}

void Accelerator::fill_async(void* destination, std::byte value, std::uint64_t bytes,
                             StreamRef stream, CallSite site) {
    const Caller caller{"fill", site};
    StreamState& state = stream_state(stream, caller);
    if (bytes == 0) {
        return;
    }
    const Range range = device_range(destination, bytes, caller);
    OperationRecord record = record_of(OperationKind::fill, site, range);
    const Touch touch =
        issue(state, record,
              FillWork{static_cast<std::byte*>(destination) + arena_.alias_distance_bytes(), value,
                       bytes});
    use(state, touch, std::array{Use{range, Access::write}});
}

void Accelerator::launch(Kernel kernel, StreamRef stream, CallSite site) {
    const Caller caller{"launch", site, kernel.name};
    StreamState& state = stream_state(stream, caller);
    uses_.clear();
    declare(device_memory_, kernel.reads, Access::read, caller);
    declare(device_memory_, kernel.writes, Access::write, caller);
    OperationRecord record =
        record_of(OperationKind::launch, site, uses_.empty() ? Range{} : uses_.front().range);
    record.detail = log_.names().intern(kernel.name);
    launch_bytes_.push_back(
        std::accumulate(uses_.begin(), uses_.end(), std::uint64_t{0},
                        [](std::uint64_t sum, const Use& use) { return sum + use.range.bytes; }));
    const Touch touch = issue(state, record, KernelWork{launches_.add(std::move(kernel))});
    use(state, touch, uses_);
}

void Accelerator::record(EventRef event, StreamRef stream, CallSite site) {
    const Caller caller{"record", site};
    EventState& mark = event_state(event, caller);
    StreamState& state = stream_state(stream, caller);
    OperationRecord record = record_of(OperationKind::record, site, {});
    const Epoch epoch = issue(state, record, Marker{}).epoch;
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
    OperationRecord record = record_of(OperationKind::wait, site, {});
    record.follow(mark.mark);
    issue(state, record, Marker{});
}

void Accelerator::await(EventState& event, const Caller& caller) {
    if (!SWAPLAB_MUTANT("sim.synchronize_ignored")) {
        scheduler_.run_until(event.mark, event.clock);
    }
    report_failure(caller);
    host_reached(event.mark, event.clock);
}

void Accelerator::host_reached(Epoch mark, const VectorClock& clock) {
    host_waited_for(mark, clock);
    release_pinned();
    begin_downloads();
}

void Accelerator::synchronize(EventRef event, CallSite site) {
    const Caller caller{"synchronize", site};
    EventState& mark = event_state(event, caller);
    mark.awaited = true;
    if (mark.mark.sequence == 0) {
        return;
    }
    OperationRecord record = record_of(OperationKind::synchronize, site, {});
    record.stream = scheduler_.name(mark.mark.lane);
    log_.add(record);
    await(mark, caller);
    trim_pool();
}

bool Accelerator::query(EventRef event, CallSite site) {
    const Caller caller{"query", site};
    EventState& mark = event_state(event, caller);
    mark.awaited = true;
    if (mark.mark.sequence == 0) {
        return true;
    }
    if (!scheduler_.has_run(mark.mark)) {
        scheduler_.run_towards(mark.clock);
    }
    report_failure(caller);
    if (!scheduler_.has_run(mark.mark)) {
        begin_downloads();
        return false;
    }
    await(mark, caller);
    return true;
}

void Accelerator::host_access(const void* pointer, std::uint64_t bytes, Access access,
                              CallSite site) {
    if (bytes == 0) {
        return;
    }
    const OperationKind kind =
        access == Access::read ? OperationKind::host_read : OperationKind::host_write;
    const Caller caller{name_of(kind), site};
    if (is_reentrant(caller)) {
        refuse_reentrant(caller);
    }
    const Range range = pinned_range(pointer, bytes, caller);
    if (page_guard_) {
        PageGuard::open({address_of(pointer), address_of(pointer) + bytes});
    }
    const Allocation& allocation = *range.allocation;
    const std::uint64_t id = log_.add(record_of(kind, site, range));
    if (!options_.check_accesses || failure_) {
        return;
    }
    const Span span{range.offset_bytes, range.offset_bytes + bytes};
    const auto conflict = access == Access::read ? allocation.shadow.conflict_of_read(span, host_)
                                                 : allocation.shadow.conflict_of_write(span, host_);
    if (conflict && !SWAPLAB_MUTANT("sim.host_access_unchecked")) {
        find_conflict(FindingKind::race, *conflict, id, allocation);
    }
}

}  // namespace swaplab::sim
