#include "simulated/allocations.hpp"

#include <utility>

namespace swaplab::sim {

Allocation& Allocations::add(std::uint64_t address, std::uint64_t bytes,
                             std::uint64_t rounded_bytes) {
    if (const auto same = index_.at_or_below(address)) {
        Allocation& freed = slots_[*same];
        if (freed.address == address && freed.rounded_bytes == rounded_bytes) {
            freed.bytes = bytes;
            freed.live = true;
            return freed;
        }
    }
    while (const auto gone = index_.take_first(address, address + rounded_bytes)) {
        unused_.push_back(*gone);
    }
    if (unused_.empty()) {
        unused_.push_back(static_cast<std::uint32_t>(slots_.size()));
        slots_.emplace_back();
    }
    const std::uint32_t slot = unused_.back();
    unused_.pop_back();
    index_.insert(address, slot);
    Allocation& fresh = slots_[slot];
    fresh.address = address;
    fresh.bytes = bytes;
    fresh.rounded_bytes = rounded_bytes;
    fresh.live = true;
    return fresh;
}

void Allocations::remove(Allocation& allocation, CallSite freed_at) noexcept {
    allocation.live = false;
    allocation.freed_at = freed_at;
}

const Allocation* Allocations::holder(std::uint64_t address) const noexcept {
    const auto slot = index_.at_or_below(address);
    if (!slot) {
        return nullptr;
    }
    const Allocation& candidate = slots_[*slot];
    return address - candidate.address < candidate.bytes ? &candidate : nullptr;
}

const Allocation* Allocations::find(std::uint64_t address) const noexcept {
    const Allocation* found = holder(address);
    return found != nullptr && found->live ? found : nullptr;
}

Allocation* Allocations::find(std::uint64_t address) noexcept {
    return const_cast<Allocation*>(std::as_const(*this).find(address));
}

const Allocation* Allocations::find_freed(std::uint64_t address) const noexcept {
    const Allocation* found = holder(address);
    return found == nullptr || found->live ? nullptr : found;
}

Allocations::ShadowSize Allocations::shadow_size() const noexcept {
    ShadowSize size;
    for (const Allocation& each : slots_) {
        if (each.live) {
            size.bytes += sizeof(Shadow) + each.shadow.heap_bytes();
            size.intervals += each.shadow.interval_count();
        }
    }
    return size;
}

}  // namespace swaplab::sim
