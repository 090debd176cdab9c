/// Allocation and release of device and pinned memory, and who owns which address.

#include "simulated/accelerator.hpp"

#include "swaplab/sim/mutant.hpp"
#include "swaplab/sim/units.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

namespace swaplab::sim {
namespace {

constexpr std::uint64_t device_alignment_bytes = 256;
constexpr std::uint64_t pinned_alignment_bytes = 4096;
constexpr std::size_t holders_shown_max = 10;

std::byte* pointer_to(std::uint64_t address) {
    return reinterpret_cast<std::byte*>(static_cast<std::uintptr_t>(address));
}

}  // namespace

void Accelerator::check_capacity(std::uint64_t bytes, std::uint64_t rounded_bytes,
                                 std::string_view tag, CallSite site) const {
    const std::uint64_t charged_bytes = ledger_.now(MemoryKind::device, Size::rounded);
    if (rounded_bytes >= bytes && rounded_bytes <= options_.capacity_bytes - charged_bytes) {
        return;
    }
    if (SWAPLAB_MUTANT("sim.capacity_unchecked")) {
        return;
    }
    throw OutOfDeviceMemory({rank(), std::string(tag), bytes, rounded_bytes, charged_bytes,
                             options_.capacity_bytes,
                             ledger_.holders(MemoryKind::device, holders_shown_max),
                             ledger_.by_tag(MemoryKind::device), site});
}

// A program whose order leaves no hole to its stream waits for everything, as a stream-ordered
// allocator that inserts the missing dependency would.
std::uint64_t Accelerator::take_region(std::uint64_t rounded_bytes, StreamState& stream) {
    stream.clock.join(host_);
    if (const auto offset = address_space_.take(rounded_bytes, stream.clock)) {
        return *offset;
    }
    scheduler_.run_all();
    streams_.for_each([this](const StreamState& other) { host_.join(other.clock); });
    stream.clock.join(host_);
    if (const auto offset = address_space_.take(rounded_bytes, stream.clock)) {
        return *offset;
    }
    throw DeviceError(fmt::format("rank {}: no hole of {} among the addresses of the device; free "
                                  "and allocate in larger pieces",
                                  rank(), format_bytes(rounded_bytes)),
                      {{"rank", fmt::format("rank {}", rank())}, {"operation", "allocate"}});
}

void* Accelerator::allocate(std::uint64_t bytes, StreamRef stream, std::string_view tag,
                            CallSite site) {
    const Caller caller{"allocate", site};
    StreamState& state = stream_state(stream, caller);
    if (bytes == 0) {
        refuse(caller, "0 bytes asked; a buffer of 0 bytes has no memory");
    }
    const std::uint64_t rounded_bytes = round_up(bytes, device_alignment_bytes);
    check_capacity(bytes, rounded_bytes, tag, site);
    std::byte* memory = arena_.user() + take_region(rounded_bytes, state);
    const MemoryLedger::Id ledger_id =
        ledger_.charge(MemoryKind::device, bytes, rounded_bytes, tag, site);
    TraceEvent event = trace_event("allocate", state);
    event.tag = tag;
    event.bytes = bytes;
    const Touch birth =
        issue(state, std::move(event),
              AllocateWork{memory + arena_.alias_distance_bytes(), rounded_bytes}, site);
    device_memory_.add({address_of(memory), bytes, rounded_bytes, std::string(tag), site, ledger_id,
                        Shadow(bytes, birth, false)});
    return memory;
}

void Accelerator::deallocate(void* pointer, StreamRef stream, CallSite site) noexcept {
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
                            found->tag, format_site(site)),
                {{"operation", "free"}, {"tag", found->tag}, {"site", format_site(site)}});
    StreamState orphan{scheduler_.open("no stream", host_), host_};
    free_region(*found, orphan, site);
    scheduler_.close(orphan.lane);
}

void Accelerator::free_region(Allocation& allocation, StreamState& stream, CallSite site) {
    ledger_.discharge(allocation.ledger_id);
    const Touch end = issue(stream, trace_event("free", stream, {&allocation, 0, allocation.bytes}),
                            FreeWork{pointer_to(allocation.address) + arena_.alias_distance_bytes(),
                                     allocation.rounded_bytes, allocation.ledger_id},
                            site);
    find_in_flight(allocation, stream.clock, end.operation);
    address_space_.give_back(allocation.address - address_of(arena_.user()),
                             allocation.rounded_bytes, stream.clock);
    device_memory_.remove(allocation.address, site);
}

// Whoever gets the bytes next is ordered after the free, so this is where reuse races are found.
void Accelerator::find_in_flight(const Allocation& allocation, const VectorClock& clock,
                                 std::uint64_t operation) {
    const auto conflict = allocation.shadow.conflict_of_write({0, allocation.bytes}, clock);
    if (conflict && !SWAPLAB_MUTANT("sim.free_order_unchecked")) {
        find_conflict(FindingKind::in_flight_reuse, *conflict, operation, allocation);
    }
}

void* Accelerator::allocate_pinned(std::uint64_t bytes, std::string_view tag, CallSite site) {
    if (bytes == 0) {
        refuse({"allocate_pinned", site}, "0 bytes asked; a buffer of 0 bytes has no memory");
    }
    const std::uint64_t rounded_bytes = round_up(bytes, pinned_alignment_bytes);
    PinnedMemory memory(
        static_cast<std::byte*>(std::aligned_alloc(pinned_alignment_bytes, rounded_bytes)));
    if (memory == nullptr) {
        throw std::bad_alloc();
    }
    std::memset(memory.get(), 0, rounded_bytes);
    const std::uint64_t address = address_of(memory.get());
    const MemoryLedger::Id ledger_id =
        ledger_.charge(MemoryKind::pinned, bytes, rounded_bytes, tag, site);
    pinned_memory_.add({address, bytes, rounded_bytes, std::string(tag), site, ledger_id,
                        Shadow(bytes, Touch{}, true)});
    pinned_blocks_.emplace(address, std::move(memory));
    log_.add({"allocate pinned", {}, std::string(tag), 0, bytes, {}}, site);
    return pointer_to(address);
}

void Accelerator::deallocate_pinned(void* pointer, CallSite site) noexcept {
    const Allocation* found = pinned_memory_.find(address_of(pointer));
    if (found == nullptr || found->address != address_of(pointer)) {
        return find_wrong_free(pinned_memory_, pointer, site);
    }
    const auto block = pinned_blocks_.find(found->address);
    pinned_unused_.push_back(std::move(block->second));
    pinned_blocks_.erase(block);
    ledger_.discharge(found->ledger_id);
    ledger_.vacate(found->ledger_id);
    const std::uint64_t id = log_.add({"free pinned", {}, found->tag, 0, found->bytes, {}}, site);
    find_in_flight(*found, host_, id);
    pinned_memory_.remove(found->address, site);
    release_pinned();
}

void Accelerator::release_pinned() {
    if (scheduler_.idle()) {
        pinned_unused_.clear();
    }
}

Accelerator::Range Accelerator::range_in(Allocations& allocations, const void* pointer,
                                         std::uint64_t bytes, const Caller& caller) const {
    const std::uint64_t address = address_of(pointer);
    Allocation* allocation = allocations.find(address);
    if (allocation == nullptr) {
        return {};
    }
    const std::uint64_t offset = address - allocation->address;
    if (bytes > allocation->bytes - offset && !SWAPLAB_MUTANT("sim.overrun_unchecked")) {
        refuse(caller,
               fmt::format("{} B from offset {} of \"{}\" on end beyond its {} B (allocated at {})",
                           bytes, offset, allocation->tag, allocation->bytes,
                           format_site(allocation->site)),
               {{"tag", allocation->tag},
                {"expected", fmt::format("at most {} B", allocation->bytes - offset)},
                {"found", fmt::format("{} B", bytes)}});
    }
    return {allocation, offset, bytes};
}

Accelerator::Range Accelerator::device_range(const void* pointer, std::uint64_t bytes,
                                             const Caller& caller) {
    const Range range = range_in(device_memory_, pointer, bytes, caller);
    if (range.allocation == nullptr) {
        find_not_device_memory(pointer, caller);
        refuse(caller, "the address is not live device memory of this device");
    }
    return range;
}

Accelerator::Range Accelerator::pinned_range(const void* pointer, std::uint64_t bytes,
                                             const Caller& caller) {
    const Range range = range_in(pinned_memory_, pointer, bytes, caller);
    if (range.allocation == nullptr) {
        refuse(caller,
               "the host side is not live pinned memory of this device; allocate it with "
               "PinnedBuffer");
    }
    return range;
}

}  // namespace swaplab::sim
