/// Allocation and release of device and pinned memory, and who owns which address.

#include "simulated/accelerator.hpp"

#include "swaplab/sim/mutant.hpp"
#include "swaplab/sim/units.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace swaplab::sim {
namespace {

constexpr std::size_t holders_shown_max = 10;

}  // namespace

bool Accelerator::fits(const Request& request) const {
    const std::uint64_t charged_bytes = ledger_.now(MemoryKind::device, Size::rounded);
    return (request.rounded_bytes >= request.bytes &&
            request.rounded_bytes <=
                options_.capacity_bytes - options_.context_bytes - charged_bytes) ||
           SWAPLAB_MUTANT("sim.capacity_unchecked");
}

// Under raw what is given back counts as free at once, and caching has waited, so that waiting for
// pending work makes room in stream-ordered pools only.
void Accelerator::run_out(const Request& request, const StreamState& stream) const {
    OutOfDeviceMemory::Report report =
        report_of(MemoryKind::device, request.bytes, request.rounded_bytes, request.tag);
    report.capacity_bytes = options_.capacity_bytes;
    report.context_bytes = options_.context_bytes;
    report.site = request.site;
    if (pool_) {
        report.reserved_bytes = pool_->reserved_bytes() + outside_bytes_;
        const SegmentPool::Wish wish{request.rounded_bytes, stream.serial};
        report.largest_hole_bytes = pool_->largest(wish);
        report.waiting_suffices =
            request.rounded_bytes <= options_.capacity_bytes - options_.context_bytes &&
            pool_->fits_without_idle(wish);
    } else {
        report.largest_hole_bytes =
            std::min(report.free_bytes(), address_space_.largest(stream.clock));
    }
    throw OutOfDeviceMemory(std::move(report));
}

OutOfDeviceMemory::Report Accelerator::report_of(MemoryKind kind, std::uint64_t bytes,
                                                 std::uint64_t rounded_bytes,
                                                 std::string_view tag) const {
    OutOfDeviceMemory::Report report;
    report.rank = rank();
    report.memory = std::string(name_of(kind));
    report.tag = std::string(tag);
    report.requested_bytes = bytes;
    report.rounded_bytes = rounded_bytes;
    report.charged_bytes = ledger_.now(kind, Size::rounded);
    report.holders = ledger_.holders(kind, holders_shown_max);
    report.by_tag = ledger_.by_tag(kind);
    report.pending_bytes = ledger_.pending_bytes(kind);
    return report;
}

// A program whose order leaves no hole to its stream waits for everything, as a stream-ordered
// allocator that inserts the missing dependency would.
Accelerator::Region Accelerator::take_region(const Request& request, StreamState& stream) {
    if (pool_) {
        return take_from_pool(request, stream);
    }
    if (!fits(request)) {
        run_out(request, stream);
    }
    const std::uint64_t bytes = request.rounded_bytes;
    if (const auto offset = address_space_.take(bytes, stream.clock, host_)) {
        return {*offset, bytes};
    }
    wait_for_everything(request.site);
    follow_host(stream);
    if (const auto offset = address_space_.take(bytes, stream.clock, host_)) {
        return {*offset, bytes};
    }
    run_out(request, stream);
}

Accelerator::StreamState& Accelerator::stream_to_allocate_on(std::uint64_t bytes, StreamRef stream,
                                                             const Caller& caller) {
    StreamState& state = stream_state(stream, caller);
    if (bytes == 0) {
        refuse(caller, "0 bytes asked; a buffer of 0 bytes has no memory");
    }
    follow_default(state, caller.site);
    follow_host(state);
    return state;
}

void* Accelerator::allocate(std::uint64_t bytes, StreamRef stream, std::string_view tag,
                            CallSite site) {
    StreamState& state = stream_to_allocate_on(bytes, stream, {"allocate", site});
    const Request request{
        bytes, pool_ ? pool_->round(bytes) : round_up(bytes, device_alignment_bytes), tag, site};
    return begin_allocation(request, state, take_region(request, state), false);
}

void* Accelerator::allocate_outside_pool(std::uint64_t bytes, StreamRef stream,
                                         std::string_view tag, CallSite site) {
    if (!pool_) {
        return allocate(bytes, stream, tag, site);
    }
    StreamState& state = stream_to_allocate_on(bytes, stream, {"allocate_outside_pool", site});
    const Request request{bytes, round_up(bytes, device_alignment_bytes), tag, site};
    return begin_allocation(request, state, take_outside(request, state), true);
}

void* Accelerator::begin_allocation(const Request& request, StreamState& stream, Region region,
                                    bool outside) {
    const auto [offset, rounded_bytes] = region;
    const auto& [bytes, asked_bytes, tag, site] = request;
    std::byte* const memory = arena_.user() + offset;
    const MemoryLedger::Id ledger_id =
        ledger_.charge(MemoryKind::device, bytes, rounded_bytes, tag, site);
    Allocation& fresh = device_memory_.add(address_of(memory), bytes, rounded_bytes);
    fresh.tag = log_.names().intern(tag);
    fresh.site = site;
    fresh.ledger_id = ledger_id;
    OperationRecord record = record_of(OperationKind::allocate, site, {&fresh, 0, bytes});
    const Touch birth =
        issue(stream, record,
              AllocateWork{memory + arena_.alias_distance_bytes(), rounded_bytes, ledger_id});
    fresh.birth = birth.epoch;
    fresh.owner = stream.serial;
    fresh.outside = outside;
    stats_.active.peak = std::max(stats_.active.peak,
                                  ledger_.now(MemoryKind::device, Size::rounded) + deferred_bytes_);
    stats_.reserved.peak = std::max(stats_.reserved.peak, reserved_bytes());
    fresh.shadow.begin(bytes, birth, false);
    return memory;
}

void Accelerator::deallocate(void* pointer, StreamRef stream, CallSite site) noexcept {
    if (is_reentrant({"free", site})) {
        return;
    }
    Allocation* found = device_memory_.find(address_of(pointer));
    if (found == nullptr || found->address != address_of(pointer)) {
        return find_wrong_free(device_memory_, pointer, site);
    }
    if (StreamState* state = find_stream(stream)) {
        return free_region(*found, *state, site);
    }
    add_finding(FindingKind::use_after_free,
                fmt::format("free of \"{}\" on a stream that is gone ({}); streams must outlive "
                            "the buffers freed on them",
                            tag_of(*found), format_site(site)),
                {{"operation", "free"}, {"tag", tag_of(*found)}, {"site", format_site(site)}});
    const NameId name = log_.names().intern("no stream");
    StreamState orphan = open(name, StreamKind::non_blocking);
    free_region(*found, orphan, site);
    scheduler_.close(orphan.lane);
}

void Accelerator::free_region(Allocation& allocation, StreamState& stream, CallSite site) {
    ledger_.discharge(allocation.ledger_id);
    OperationRecord record =
        record_of(OperationKind::free, site, {&allocation, 0, allocation.bytes});
    if (!SWAPLAB_MUTANT("sim.free_overtakes")) {
        record.follow(allocation.birth);
    }
    const Touch end = issue(stream, record,
                            FreeWork{pointer_to(allocation.address) + arena_.alias_distance_bytes(),
                                     allocation.rounded_bytes, allocation.ledger_id});
    find_in_flight(allocation, stream.clock, end.operation);
    give_back(allocation, stream, end.epoch);
    device_memory_.remove(allocation, site);
}

// Whoever gets the bytes next is ordered after the free, so this is where reuse races are found.
void Accelerator::find_in_flight(const Allocation& allocation, const VectorClock& clock,
                                 std::uint64_t operation) {
    if (!options_.check_accesses || failure_) {
        return;
    }
    const auto conflict = allocation.shadow.conflict_of_write({0, allocation.bytes}, clock);
    if (conflict && !SWAPLAB_MUTANT("sim.free_order_unchecked")) {
        find_conflict(FindingKind::in_flight_reuse, *conflict, operation, allocation);
    }
}

void* Accelerator::allocate_pinned(std::uint64_t bytes, std::string_view tag, CallSite site) {
    check_usable({"allocate_pinned", site});
    if (bytes == 0) {
        refuse({"allocate_pinned", site}, "0 bytes asked; a buffer of 0 bytes has no memory");
    }
    const std::uint64_t rounded_bytes = round_pinned(bytes);
    PinnedMemory memory = take_pinned(bytes, rounded_bytes, tag, site);
    const std::uint64_t address = address_of(memory.get());
    if (page_guard_) {
        page_guard_->watch({address, address + round_up(rounded_bytes, pinned_alignment_bytes)});
    }
    add_pinned(address, {bytes, rounded_bytes, tag, site}).block = std::move(memory);
    return pointer_to(address);
}

void Accelerator::register_pinned(void* pages, std::uint64_t bytes, std::string_view tag,
                                  CallSite site) {
    check_usable({"register_pinned", site});
    const std::uint64_t rounded_bytes = round_up(bytes, pinned_alignment_bytes);
    check_pinned_quota(bytes, rounded_bytes, tag, site);
    reserve_pinned(rounded_bytes);
    add_pinned(address_of(pages), {bytes, rounded_bytes, tag, site});
}

Allocation& Accelerator::add_pinned(std::uint64_t address, const Request& request) {
    const auto& [bytes, rounded_bytes, tag, site] = request;
    const MemoryLedger::Id ledger_id =
        ledger_.charge(MemoryKind::pinned, bytes, rounded_bytes, tag, site);
    ledger_.occupy(ledger_id);
    Allocation& fresh = pinned_memory_.add(address, bytes, rounded_bytes);
    fresh.tag = log_.names().intern(tag);
    fresh.site = site;
    fresh.ledger_id = ledger_id;
    fresh.block = nullptr;
    fresh.shadow.begin(bytes, Touch{}, true);
    log_.add(record_of(OperationKind::allocate_pinned, site, {&fresh, 0, bytes}));
    return fresh;
}

void Accelerator::deallocate_pinned(void* pointer, CallSite site) noexcept {
    if (is_reentrant({"free_pinned", site})) {
        return;
    }
    Allocation* found = pinned_memory_.find(address_of(pointer));
    if (found == nullptr || found->address != address_of(pointer)) {
        return find_wrong_free(pinned_memory_, pointer, site);
    }
    const bool registered = found->block == nullptr;
    if (registered || options_.pinned == PinnedPolicy::exact) {
        stats_.pinned_reserved.now -= found->rounded_bytes;
    }
    if (!registered) {
        pinned_unused_.push_back({found->rounded_bytes, std::move(found->block)});
    }
    ledger_.discharge(found->ledger_id);
    ledger_.vacate(found->ledger_id);
    const std::uint64_t id =
        log_.add(record_of(OperationKind::free_pinned, site, {found, 0, found->bytes}));
    find_in_flight(*found, host_, id);
    pinned_memory_.remove(*found, site);
    release_pinned();
}

Accelerator::Range Accelerator::range_in(Allocations& allocations, const void* pointer,
                                         std::uint64_t bytes, const Caller& caller) {
    const std::uint64_t address = address_of(pointer);
    Allocation* allocation = allocations.find(address);
    if (allocation == nullptr) {
        return {};
    }
    const std::uint64_t offset = address - allocation->address;
    if (bytes > allocation->bytes - offset && !SWAPLAB_MUTANT("sim.overrun_unchecked")) {
        refuse_bad(
            caller,
            fmt::format("{} B from offset {} of \"{}\" on end beyond its {} B (allocated at {})",
                        bytes, offset, tag_of(*allocation), allocation->bytes,
                        format_site(allocation->site)),
            {{"tag", tag_of(*allocation)},
             {"expected", fmt::format("at most {} B", allocation->bytes - offset)},
             {"found", fmt::format("{} B", bytes)}});
    }
    return {allocation, offset, bytes};
}

Accelerator::Range Accelerator::device_range(const void* pointer, std::uint64_t bytes,
                                             const Caller& caller) {
    const Range range = range_in(device_memory_, pointer, bytes, caller);
    if (range.allocation == nullptr) {
        const char* const reason = "the address is not live device memory of this device";
        if (arena_.contains(pointer) && device_memory_.find_freed(address_of(pointer)) == nullptr) {
            refuse_bad(caller, reason);
        }
        find_not_device_memory(pointer, caller);
        refuse(caller, reason);
    }
    return range;
}

Accelerator::Range Accelerator::pinned_range(const void* pointer, std::uint64_t bytes,
                                             const Caller& caller) {
    const Range range = range_in(pinned_memory_, pointer, bytes, caller);
    if (range.allocation != nullptr) {
        return range;
    }
    if (arena_.contains(pointer)) {
        refuse_bad(caller, "the host side is device memory; is the direction right?");
    }
    const char* const reason =
        "the host side is not live pinned memory of this device; allocate it with PinnedBuffer, or "
        "use copy_pageable";
    if (const Allocation* freed = pinned_memory_.find_freed(address_of(pointer))) {
        find_use_after_free(*freed, caller);
        refuse(caller, reason);
    }
    refuse_bad(caller, reason);
}

}  // namespace swaplab::sim
