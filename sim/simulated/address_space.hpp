#pragma once

/// Which offsets of an arena are free, and whom a freed one may be given to.

#include "simulated/clock.hpp"

#include <cstdint>
#include <map>
#include <optional>

namespace swaplab::sim {

/// First fit over offsets. A freed region is given out again only to work that is ordered after its
/// free, as a stream-ordered allocator does. Sizes are multiples of 256 B.
class AddressSpace {
  public:
    explicit AddressSpace(std::uint64_t bytes) { free_[0] = {bytes, {}}; }

    /// Empty when no hole that `clock` is ordered after is large enough.
    [[nodiscard]] std::optional<std::uint64_t> take(std::uint64_t bytes, const VectorClock& clock);
    void give_back(std::uint64_t offset, std::uint64_t bytes, const VectorClock& freed_at) {
        free_.emplace(offset, Region{bytes, freed_at});
    }

  private:
    /// Freed at one point. Neighbours freed at different points stay apart: a joined clock would
    /// keep memory from streams that are ordered after one of the frees.
    struct Region {
        std::uint64_t bytes = 0;
        VectorClock freed_at;
    };
    using Regions = std::map<std::uint64_t, Region>;

    void consume(Regions::iterator first, std::uint64_t bytes);

    Regions free_;
};

}  // namespace swaplab::sim
