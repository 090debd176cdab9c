#include "simulated/allocations.hpp"

#include <iterator>
#include <utility>

namespace swaplab::sim {

Allocation& Allocations::add(Allocation allocation) {
    const std::uint64_t address = allocation.address;
    const std::uint64_t end = address + allocation.rounded_bytes;
    auto freed = freed_.upper_bound(address);
    if (freed != freed_.begin()) {
        const Freed& before = std::prev(freed)->second;
        if (before.address + before.rounded_bytes > address) {
            --freed;
        }
    }
    while (freed != freed_.end() && freed->first < end) {
        freed = freed_.erase(freed);
    }
    return live_.insert_or_assign(address, std::move(allocation)).first->second;
}

void Allocations::remove(std::uint64_t address, CallSite freed_at) {
    const auto found = live_.find(address);
    const Allocation& gone = found->second;
    freed_.insert_or_assign(
        address, Freed{address, gone.bytes, gone.rounded_bytes, gone.tag, gone.site, freed_at});
    live_.erase(found);
}

const Allocation* Allocations::find(std::uint64_t address) const noexcept {
    auto after = live_.upper_bound(address);
    if (after == live_.begin()) {
        return nullptr;
    }
    const Allocation& candidate = std::prev(after)->second;
    return address < candidate.address + candidate.bytes ? &candidate : nullptr;
}

Allocation* Allocations::find(std::uint64_t address) noexcept {
    return const_cast<Allocation*>(std::as_const(*this).find(address));
}

const Allocations::Freed* Allocations::find_freed(std::uint64_t address) const noexcept {
    auto after = freed_.upper_bound(address);
    if (after == freed_.begin()) {
        return nullptr;
    }
    const Freed& candidate = std::prev(after)->second;
    return address < candidate.address + candidate.bytes ? &candidate : nullptr;
}

}  // namespace swaplab::sim
