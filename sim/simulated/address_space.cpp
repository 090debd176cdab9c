#include "simulated/address_space.hpp"

#include <algorithm>
#include <utility>

namespace swaplab::sim {

std::optional<std::uint64_t> AddressSpace::take(std::uint64_t bytes, const VectorClock& clock) {
    auto first = free_.end();
    std::uint64_t end = 0;
    for (auto region = free_.begin(); region != free_.end(); ++region) {
        if (!clock.covers(region->second.freed_at)) {
            first = free_.end();
            continue;
        }
        if (first == free_.end() || region->first != end) {
            first = region;
        }
        end = region->first + region->second.bytes;
        if (end - first->first >= bytes) {
            const std::uint64_t offset = first->first;
            consume(first, bytes);
            return offset;
        }
    }
    return std::nullopt;
}

void AddressSpace::consume(Regions::iterator first, std::uint64_t bytes) {
    const std::uint64_t end = first->first + bytes;
    while (bytes > 0) {
        const std::uint64_t taken = std::min(bytes, first->second.bytes);
        Region rest = std::move(first->second);
        first = free_.erase(first);
        rest.bytes -= taken;
        bytes -= taken;
        if (rest.bytes > 0) {
            free_.emplace(end, std::move(rest));
        }
    }
}

}  // namespace swaplab::sim
