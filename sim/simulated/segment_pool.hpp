#pragma once

/// Device memory in segments that are cut into blocks: what caching and pooling allocators do.

#include "simulated/address_space.hpp"
#include "simulated/clock.hpp"

#include "swaplab/sim/simulated_device.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <vector>

namespace swaplab::sim {

/// Segments are taken from `addresses` and count as reserved until they are released, whoever uses
/// their blocks. The rules of sizes are AllocationPolicy's; whom a free block may be given to is
/// the caller's to say.
class SegmentPool {
  public:
    struct Region {
        std::uint64_t offset = 0;
        std::uint64_t bytes = 0;
    };
    struct Wish {
        std::uint64_t bytes = 0;   ///< as round() says
        std::uint64_t stream = 0;  ///< never reused
    };
    struct Block {
        std::uint64_t offset = 0;
        std::uint64_t bytes = 0;
        std::uint64_t segment = 0;  ///< its offset
        std::uint64_t shelf = 0;    ///< free blocks of one shelf are looked through together
        bool live = false;
        std::vector<Epoch> freed_at;  ///< the frees of what it was; empty: fresh
        VectorClock freed;            ///< those, and everything ordered before them
    };

    SegmentPool(const SimulatedDeviceOptions& options, AddressSpace& addresses) noexcept
        : policy_(options.allocation),
          capacity_bytes_(options.capacity_bytes - options.context_bytes),
          addresses_(addresses) {}

    [[nodiscard]] std::uint64_t round(std::uint64_t bytes) const noexcept;
    /// The smallest free block that suffices and that `may_use` accepts; nullptr when there is
    /// none.
    template <class MayUse>
    [[nodiscard]] const Block* find(const Wish& wish, MayUse may_use) const {
        const std::uint64_t shelf = shelf_of(wish);
        for (auto it = free_.lower_bound({shelf, wish.bytes, 0});
             it != free_.end() && std::get<0>(*it) == shelf; ++it) {
            const Block& block = blocks_.at(std::get<2>(*it));
            if (may_use(block)) {
                return &block;
            }
        }
        return nullptr;
    }
    /// Takes a free block for `wish`; the rest of it stays free where the policy splits.
    Region take(const Block& block, const Wish& wish);
    /// From a new segment. Empty when that would reserve more than the capacity.
    [[nodiscard]] std::optional<Region> grow(const Wish& wish, const VectorClock& host);
    /// `freed` covers `at`, the free of the live block that begins at `offset`.
    void give_back(std::uint64_t offset, Epoch at, const VectorClock& freed);
    /// Joins free blocks that adjoin, also those freed on several streams.
    void join_all();
    /// Gives up segments without a live block, all of whose blocks `may_go` accepts, while more
    /// than `keep_bytes` are reserved.
    template <class MayGo>
    void release(std::uint64_t keep_bytes, MayGo may_go) {
        const std::set<std::uint64_t> idle = idle_;
        for (const std::uint64_t segment : idle) {
            if (reserved_bytes_ > keep_bytes && all_of_segment(segment, may_go)) {
                drop(segment);
            }
        }
    }

    [[nodiscard]] std::uint64_t reserved_bytes() const noexcept { return reserved_bytes_; }
    /// Of the capacity, what others hold now: the pool cannot grow into it.
    void set_outside(std::uint64_t bytes) noexcept { outside_bytes_ = bytes; }
    /// What neither the pool nor anybody outside holds.
    [[nodiscard]] std::uint64_t unreserved_bytes() const noexcept {
        return capacity_bytes_ - outside_bytes_ - reserved_bytes_;
    }
    [[nodiscard]] std::uint64_t segment_count() const noexcept { return segments_.size(); }
    /// Whether a segment for `wish` would fit once all without a live block are released.
    [[nodiscard]] bool fits_without_idle(const Wish& wish) const;
    /// What the largest free block for such a wish, or a new segment, would give.
    [[nodiscard]] std::uint64_t largest(const Wish& wish) const;

  private:
    struct Segment {
        std::uint64_t bytes = 0;
        std::uint64_t live_blocks = 0;
    };
    using Blocks = std::map<std::uint64_t, Block>;

    template <class MayGo>
    [[nodiscard]] bool all_of_segment(std::uint64_t segment, MayGo may_go) const {
        for (auto it = blocks_.find(segment); it != blocks_.end(); ++it) {
            if (it->second.segment != segment) {
                break;
            }
            if (!may_go(it->second)) {
                return false;
            }
        }
        return true;
    }
    [[nodiscard]] std::uint64_t shelf_of(const Wish& wish) const noexcept;
    [[nodiscard]] std::uint64_t segment_bytes(std::uint64_t bytes) const noexcept;
    [[nodiscard]] bool splits(const Wish& wish, std::uint64_t rest_bytes) const noexcept;
    [[nodiscard]] bool may_join(const Block& left, const Block& right) const noexcept;
    void join_with_next(Blocks::iterator block);
    void shelve(const Block& block) { free_.insert({block.shelf, block.bytes, block.offset}); }
    void unshelve(const Block& block) { free_.erase({block.shelf, block.bytes, block.offset}); }
    void drop(std::uint64_t segment);

    AllocationPolicy policy_;
    std::uint64_t capacity_bytes_;
    AddressSpace& addresses_;
    Blocks blocks_;  ///< by offset
    std::map<std::uint64_t, Segment> segments_;
    std::set<std::uint64_t> idle_;  ///< segments without a live block
    std::set<std::tuple<std::uint64_t, std::uint64_t, std::uint64_t>>
        free_;  ///< shelf, size, place
    std::uint64_t reserved_bytes_ = 0;
    std::uint64_t outside_bytes_ = 0;
};

}  // namespace swaplab::sim
