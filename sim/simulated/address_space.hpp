#pragma once

/// Which offsets of an arena are free, and whom a freed one may be given to.

#include "simulated/clock.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

namespace swaplab::sim {

/// A freed region is given out again only to work that is ordered after its free, as a
/// stream-ordered allocator does. Sizes are multiples of 256 B.
///
/// Freed regions wait by size, because most requests ask for a size that was just freed. Those that
/// the host is ordered after belong to everybody and are joined into holes, smallest sufficient
/// hole first, once what waits is a good part of all.
class AddressSpace {
  public:
    explicit AddressSpace(std::uint64_t bytes) { add_hole(0, bytes); }

    /// For work at `clock`, which covers `host`, the clock of the host. Empty when no hole that
    /// `clock` is ordered after is large enough.
    [[nodiscard]] std::optional<std::uint64_t> take(std::uint64_t bytes, const VectorClock& clock,
                                                    const VectorClock& host);
    /// The most bytes that take() would give work at `clock`.
    [[nodiscard]] std::uint64_t largest(const VectorClock& clock) const;
    /// `freed_at`: the free itself.
    void give_back(std::uint64_t offset, std::uint64_t bytes, Epoch freed_at) {
        freed_[bytes].push_back({offset, freed_at});
        freed_bytes_ += bytes;
    }

  private:
    struct Freed {
        std::uint64_t offset = 0;
        Epoch at;
    };
    /// Part of a run: a hole (sequence 0) or a freed region.
    struct Piece {
        std::uint64_t offset = 0;
        std::uint64_t bytes = 0;
        Epoch freed_at;
        [[nodiscard]] std::uint64_t end() const noexcept { return offset + bytes; }
    };
    using BySize = std::map<std::uint64_t, std::vector<Freed>>;

    [[nodiscard]] std::optional<std::uint64_t> take_freed(std::uint64_t bytes,
                                                          const VectorClock& clock);
    [[nodiscard]] std::optional<std::uint64_t> take_hole(std::uint64_t bytes);
    /// From holes and freed regions that adjoin, the first that suffice: the last resort.
    [[nodiscard]] std::optional<std::uint64_t> take_run(std::uint64_t bytes,
                                                        const VectorClock& clock);
    /// Holes, and regions freed before `clock`, by offset.
    [[nodiscard]] std::vector<Piece> pieces_for(const VectorClock& clock) const;
    /// The first `bytes` of them; the rest stays what it was.
    void take_pieces(std::span<const Piece> run, std::uint64_t bytes);
    /// Makes holes of what `clock` is ordered after.
    void join(const VectorClock& clock);
    void add_hole(std::uint64_t offset, std::uint64_t bytes);
    void remove_hole(std::map<std::uint64_t, std::uint64_t>::iterator hole);

    BySize freed_;
    std::uint64_t freed_bytes_ = 0;
    std::uint64_t join_at_bytes_ = std::uint64_t{1} << 20U;
    std::map<std::uint64_t, std::uint64_t> holes_;  ///< offset, bytes; never adjacent
    std::set<std::pair<std::uint64_t, std::uint64_t>> holes_by_size_;
};

}  // namespace swaplab::sim
