#include "simulated/segment_pool.hpp"

#include "swaplab/sim/mutant.hpp"
#include "swaplab/sim/units.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace swaplab::sim {
namespace {

// c10/cuda/CUDACachingAllocator.cpp
constexpr std::uint64_t caching_round_bytes = 512;
constexpr std::uint64_t small_max_bytes = std::uint64_t{1} << 20U;
constexpr std::uint64_t small_segment_bytes = std::uint64_t{2} << 20U;
constexpr std::uint64_t large_segment_bytes = std::uint64_t{20} << 20U;
constexpr std::uint64_t own_segment_min_bytes = std::uint64_t{10} << 20U;
constexpr std::uint64_t page_bytes = std::uint64_t{2} << 20U;
// Of stream-ordered pools.
constexpr std::uint64_t pool_round_bytes = 256;

}  // namespace

std::uint64_t SegmentPool::round(std::uint64_t bytes) const noexcept {
    return round_up(bytes,
                    policy_ == AllocationPolicy::caching ? caching_round_bytes : pool_round_bytes);
}

std::uint64_t SegmentPool::segment_bytes(std::uint64_t bytes) const noexcept {
    if (policy_ == AllocationPolicy::caching && bytes <= small_max_bytes) {
        return small_segment_bytes;
    }
    if (policy_ == AllocationPolicy::caching && bytes < own_segment_min_bytes) {
        return large_segment_bytes;
    }
    return round_up(bytes, page_bytes);
}

std::uint64_t SegmentPool::shelf_of(const Wish& wish) const noexcept {
    if (policy_ != AllocationPolicy::caching || SWAPLAB_MUTANT("pool.any_stream")) {
        return 0;
    }
    return 2 * wish.stream + (wish.bytes <= small_max_bytes ? 0U : 1U);
}

bool SegmentPool::splits(const Wish& wish, std::uint64_t rest_bytes) const noexcept {
    if (policy_ == AllocationPolicy::caching && wish.bytes > small_max_bytes) {
        return rest_bytes > small_max_bytes;
    }
    return rest_bytes >= round(1);
}

SegmentPool::Region SegmentPool::take(const Block& found, const Wish& wish) {
    Block& block = blocks_.at(found.offset);
    unshelve(block);
    const std::uint64_t rest_bytes = block.bytes - wish.bytes;
    if (splits(wish, rest_bytes)) {
        Block rest = block;
        rest.offset += wish.bytes;
        rest.bytes = rest_bytes;
        block.bytes = wish.bytes;
        shelve(rest);
        blocks_.emplace(rest.offset, std::move(rest));
    }
    block.live = true;
    ++segments_.at(block.segment).live_blocks;
    idle_.erase(block.segment);
    return {block.offset, block.bytes};
}

std::optional<SegmentPool::Region> SegmentPool::grow(const Wish& wish, const VectorClock& host) {
    const std::uint64_t bytes = segment_bytes(wish.bytes);
    if (bytes > unreserved_bytes() && !SWAPLAB_MUTANT("pool.capacity_unchecked")) {
        return std::nullopt;
    }
    const auto offset = addresses_.take(bytes, host, host);
    if (!offset) {
        return std::nullopt;
    }
    reserved_bytes_ += bytes;
    segments_.emplace(*offset, Segment{bytes, 0});
    Block whole;
    whole.offset = *offset;
    whole.bytes = bytes;
    whole.segment = *offset;
    whole.shelf = shelf_of(wish);
    shelve(whole);
    return take(blocks_.emplace(*offset, std::move(whole)).first->second, wish);
}

void SegmentPool::give_back(std::uint64_t offset, Epoch at, const VectorClock& freed) {
    auto place = blocks_.find(offset);
    Block& block = place->second;
    block.live = false;
    block.freed_at = {at};
    block.freed = freed;
    shelve(block);
    if (--segments_.at(block.segment).live_blocks == 0) {
        idle_.insert(block.segment);
    }
    const auto next = std::next(place);
    if (next != blocks_.end() && may_join(block, next->second)) {
        join_with_next(place);
    }
    if (place != blocks_.begin() && may_join(std::prev(place)->second, block)) {
        join_with_next(std::prev(place));
    }
}

// One shelf of the caching allocator is one stream's, in whose order all its frees are.
bool SegmentPool::may_join(const Block& left, const Block& right) const noexcept {
    if (left.live || right.live || left.segment != right.segment) {
        return false;
    }
    const auto one_lane = [](const Block& block, LaneId lane) {
        return std::all_of(block.freed_at.begin(), block.freed_at.end(),
                           [lane](Epoch epoch) { return epoch.lane == lane; });
    };
    return policy_ == AllocationPolicy::caching || left.freed_at.empty() ||
           right.freed_at.empty() ||
           (one_lane(left, left.freed_at[0].lane) && one_lane(right, left.freed_at[0].lane));
}

void SegmentPool::join_with_next(Blocks::iterator place) {
    const auto next = std::next(place);
    Block& block = place->second;
    unshelve(block);
    unshelve(next->second);
    block.bytes += next->second.bytes;
    for (const Epoch epoch : next->second.freed_at) {
        const auto same = std::find_if(block.freed_at.begin(), block.freed_at.end(),
                                       [epoch](Epoch e) { return e.lane == epoch.lane; });
        if (same == block.freed_at.end()) {
            block.freed_at.push_back(epoch);
        } else {
            same->sequence = std::max(same->sequence, epoch.sequence);
        }
    }
    block.freed.join(next->second.freed);
    blocks_.erase(next);
    shelve(block);
}

void SegmentPool::join_all() {
    for (auto place = blocks_.begin(); place != blocks_.end();) {
        const auto next = std::next(place);
        if (next != blocks_.end() && !place->second.live && !next->second.live &&
            place->second.segment == next->second.segment) {
            join_with_next(place);
        } else {
            place = next;
        }
    }
}

void SegmentPool::drop(std::uint64_t segment) {
    auto place = blocks_.find(segment);
    while (place != blocks_.end() && place->second.segment == segment) {
        unshelve(place->second);
        place = blocks_.erase(place);
    }
    const std::uint64_t bytes = segments_.at(segment).bytes;
    segments_.erase(segment);
    idle_.erase(segment);
    addresses_.give_back(segment, bytes, Epoch{});
    reserved_bytes_ -= bytes;
}

bool SegmentPool::fits_without_idle(const Wish& wish) const {
    std::uint64_t kept_bytes = reserved_bytes_;
    for (const std::uint64_t segment : idle_) {
        kept_bytes -= segments_.at(segment).bytes;
    }
    return segment_bytes(wish.bytes) <= capacity_bytes_ - outside_bytes_ - kept_bytes;
}

std::uint64_t SegmentPool::largest(const Wish& wish) const {
    const std::uint64_t unreserved = unreserved_bytes();
    const auto above = free_.lower_bound({shelf_of(wish) + 1, 0, 0});
    if (above == free_.begin() || std::get<0>(*std::prev(above)) != shelf_of(wish)) {
        return unreserved;
    }
    return std::max(unreserved, std::get<1>(*std::prev(above)));
}

}  // namespace swaplab::sim
