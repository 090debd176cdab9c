/// Where host code and the device's work meet: pageable memory, host functions, late failures.

#include "simulated/accelerator.hpp"

#include "swaplab/sim/mutant.hpp"

#include <array>
#include <cstring>
#include <utility>
#include <vector>

namespace swaplab::sim {

void Accelerator::copy_pageable(void* destination, const void* source, std::uint64_t bytes,
                                CopyDirection direction, StreamRef stream, CallSite site) {
    const bool to_host = direction == CopyDirection::device_to_host;
    const Caller caller{
        name_of(to_host ? OperationKind::copy_d2h_pageable : OperationKind::copy_h2d_pageable),
        site};
    StreamState& state = stream_state(stream, caller);
    if (direction == CopyDirection::device_to_device) {
        refuse_bad(caller, "device to device has no pageable side; use copy_async");
    }
    if (bytes == 0) {
        return;
    }
    const Range range = device_range(to_host ? source : destination, bytes, caller);
    const void* host = to_host ? destination : source;
    if (arena_.contains(host) || pinned_memory_.find(address_of(host)) != nullptr) {
        refuse_bad(caller, "the host side is not pageable memory; use copy_async");
    }
    if (to_host) {
        download_pageable(caller, state, range, destination);
    } else {
        upload_pageable(caller, state, range, source);
    }
    report_failure(caller);
}

// Through a staging buffer, so that the source is read here and now. Whether the call also waits
// for its stream is open, and orders nothing: the host may not rely on it.
void Accelerator::upload_pageable(const Caller& caller, StreamState& stream, const Range& to,
                                  const void* source) {
    std::byte* const user = pointer_to(to.allocation->address) + to.offset_bytes;
    std::byte* const alias = user + arena_.alias_distance_bytes();
    const auto* from = static_cast<const std::byte*>(source);
    const bool staged = !SWAPLAB_MUTANT("sim.pageable_unstaged");
    std::vector<std::byte> staging(from, from + (staged ? to.bytes : 0));
    Kernel copy;
    copy.writes = {{user, to.bytes}};
    copy.host_body = [alias, from, bytes = to.bytes,
                      staging = std::move(staging)](const DeviceAccess&) {
        std::memcpy(alias, staging.empty() ? from : staging.data(), bytes);
    };
    OperationRecord record = record_of(OperationKind::copy_h2d_pageable, caller.site, to);
    const Touch touch = issue(stream, record, KernelWork{launches_.add(std::move(copy))});
    use(stream, touch, std::array{Use{to, Access::write}});
    if (scheduler_.chance()) {
        scheduler_.run_until(touch.epoch, stream.clock);
    }
}

void Accelerator::download_pageable(const Caller& caller, StreamState& stream, const Range& from,
                                    void* destination) {
    const std::byte* const alias =
        pointer_to(from.allocation->address) + from.offset_bytes + arena_.alias_distance_bytes();
    OperationRecord record = record_of(OperationKind::copy_d2h_pageable, caller.site, from);
    const Touch touch = issue(
        stream, record, CopyWork{static_cast<std::byte*>(destination), alias, from.bytes, false});
    use(stream, touch, std::array{Use{from, Access::read}});
    if (SWAPLAB_MUTANT("sim.pageable_download_late")) {
        return;
    }
    scheduler_.run_until(touch.epoch, stream.clock);
    if (!failure_) {
        host_reached(touch.epoch, stream.clock);
    }
}

void Accelerator::call_host(HostFunction function, StreamRef stream, CallSite site) {
    const Caller caller{name_of(OperationKind::call_host), site, function.name};
    StreamState& state = stream_state(stream, caller);
    if (!function.body) {
        refuse(caller, "the function has no body");
    }
    uses_.clear();
    declare(pinned_memory_, function.reads, Access::read, caller);
    declare(pinned_memory_, function.writes, Access::write, caller);
    OperationRecord record =
        record_of(OperationKind::call_host, site, uses_.empty() ? Range{} : uses_.front().range);
    record.detail = log_.names().intern(function.name);
    Kernel kernel;
    kernel.host_body = [body = std::move(function.body)](const DeviceAccess&) { body(); };
    const Touch touch = issue(state, record, KernelWork{launches_.add(std::move(kernel))});
    use(state, touch, uses_);
}

void Accelerator::declare(Allocations& memory, const std::vector<ByteRange>& ranges, Access access,
                          const Caller& caller) {
    for (const ByteRange& range : ranges) {
        if (range.bytes != 0) {
            const Range found = &memory == &device_memory_
                                    ? device_range(range.pointer, range.bytes, caller)
                                    : pinned_range(range.pointer, range.bytes, caller);
            uses_.push_back({found, access});
        }
    }
}

bool Accelerator::opens(const void* address, Kind kind) noexcept {
    if (arena_.contains(address)) {
        return false;
    }
    page_guard_->open_to({address_of(address), kind});
    return true;
}

// Nothing has changed since the touch: only calls change what is ordered and who holds memory.
void Accelerator::judge_touches() {
    if (page_guard_) {
        for (const PageGuard::HostTouch& touch : page_guard_->take_touches()) {
            find_unscoped(touch);
        }
    }
}

bool Accelerator::is_reentrant(const Caller& caller) {
    judge_touches();
    if (!scheduler_.running()) {
        return false;
    }
    find_reentrant(caller);
    return true;
}

void Accelerator::refuse_reentrant(const Caller& caller) const {
    refuse(caller, "kernels and host functions must not call their device");
}

void Accelerator::report_failure(const Caller& caller) const {
    if (failure_ && !SWAPLAB_MUTANT("sim.failure_unreported")) {
        throw device_lost(rank(), *failure_, caller.text(), caller.site);
    }
}

void Accelerator::check_usable(const Caller& caller) {
    if (is_reentrant(caller)) {
        refuse_reentrant(caller);
    }
    report_failure(caller);
}

}  // namespace swaplab::sim
