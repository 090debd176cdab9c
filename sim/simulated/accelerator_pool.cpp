/// Memory from pools: what AllocationPolicy and PinnedPolicy say beside plain regions.

#include "simulated/accelerator.hpp"

#include "swaplab/sim/mutant.hpp"
#include "swaplab/sim/units.hpp"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

namespace swaplab::sim {

Accelerator::Region Accelerator::take_from_pool(const Request& request, StreamState& stream) {
    const SegmentPool::Wish wish{request.rounded_bytes, stream.serial};
    if (request.rounded_bytes < request.bytes || request.rounded_bytes > options_.capacity_bytes) {
        run_out(request, stream);
    }
    const auto found = options_.allocation == AllocationPolicy::caching
                           ? take_cached(wish, request.site)
                           : take_ordered(wish, stream, request.site);
    if (!found) {
        run_out(request, stream);
    }
    follow_host(stream);
    return {found->offset, found->bytes};
}

Accelerator::Region Accelerator::take_outside(const Request& request, StreamState& stream) {
    const bool fits = request.rounded_bytes >= request.bytes &&
                      request.rounded_bytes <= pool_->unreserved_bytes();
    const auto offset = fits || SWAPLAB_MUTANT("pool.outside_unchecked")
                            ? address_space_.take(request.rounded_bytes, stream.clock, host_)
                            : std::nullopt;
    if (!offset) {
        run_out(request, stream);
    }
    outside_bytes_ += request.rounded_bytes;
    pool_->set_outside(outside_bytes_);
    return {*offset, request.rounded_bytes};
}

// As PyTorch's allocator: blocks of its own stream, a new segment, and at last everything that is
// cached given back.
std::optional<SegmentPool::Region> Accelerator::take_cached(const SegmentPool::Wish& wish,
                                                            CallSite site) {
    const auto any = [](const SegmentPool::Block&) { return true; };
    return_deferred();
    if (const auto* block = pool_->find(wish, any)) {
        return pool_->take(*block, wish);
    }
    if (const auto region = pool_->grow(wish, host_)) {
        return region;
    }
    ++stats_.retries;
    if (SWAPLAB_MUTANT("pool.never_releases")) {
        return std::nullopt;
    }
    wait_for_everything(site);
    return_deferred();
    pool_->release(0, any);
    if (const auto* block = pool_->find(wish, any)) {
        return pool_->take(*block, wish);
    }
    return pool_->grow(wish, host_);
}

// CUDA's three rules of reuse, all on by default: after events that order it; where the free has
// run, which is a matter of luck (the seed's); and when memory is out, by a dependency of its own.
std::optional<SegmentPool::Region> Accelerator::take_ordered(const SegmentPool::Wish& wish,
                                                             StreamState& stream, CallSite site) {
    const auto take = [&](const SegmentPool::Block& block) {
        for (const Epoch epoch : block.freed_at) {
            VectorClock free_itself;  // so that each free is waited for in its own lane
            free_itself.advance(epoch);
            follow(stream, {epoch, free_itself}, site);
        }
        stream.clock.join(block.freed);
        return pool_->take(block, wish);
    };
    const auto is_ordered = [&stream](const SegmentPool::Block& block) {
        return stream.clock.covers(block.freed);
    };
    const auto has_run = [this](const SegmentPool::Block& block) { return was_freed(block); };
    const auto any = [](const SegmentPool::Block&) { return true; };
    if (const auto* block = pool_->find(wish, is_ordered)) {
        return take(*block);
    }
    if (const auto* block = pool_->find(wish, has_run); block != nullptr && scheduler_.luck()) {
        return take(*block);
    }
    if (const auto region = pool_->grow(wish, host_)) {
        return region;
    }
    ++stats_.retries;
    pool_->join_all();
    if (const auto* block = pool_->find(wish, any)) {
        return take(*block);
    }
    pool_->release(0, has_run);
    return pool_->grow(wish, host_);
}

bool Accelerator::was_freed(const SegmentPool::Block& block) const noexcept {
    return std::all_of(block.freed_at.begin(), block.freed_at.end(),
                       [this](Epoch epoch) { return scheduler_.has_run(epoch); });
}

// A block of the caching allocator goes back to its stream at once if that stream freed it, and
// otherwise when the allocator sees that the other stream has come so far.
void Accelerator::give_back(const Allocation& allocation, const StreamState& stream, Epoch at) {
    const std::uint64_t offset = allocation.address - address_of(arena_.user());
    if (allocation.outside) {
        outside_bytes_ -= allocation.rounded_bytes;
        pool_->set_outside(outside_bytes_);
    }
    if (!pool_ || allocation.outside) {
        return address_space_.give_back(offset, allocation.rounded_bytes, at);
    }
    if (options_.allocation == AllocationPolicy::caching && allocation.owner != stream.serial) {
        deferred_bytes_ += allocation.rounded_bytes;
        deferred_.push_back({offset, allocation.rounded_bytes, {at, stream.clock}});
        return;
    }
    pool_->give_back(offset, at, stream.clock);
}

void Accelerator::return_deferred() {
    std::erase_if(deferred_, [this](const Deferred& each) {
        if (!scheduler_.has_run(each.freed.epoch)) {
            return false;
        }
        host_waited_for(each.freed.epoch, each.freed.clock);
        pool_->give_back(each.offset, each.freed.epoch, each.freed.clock);
        deferred_bytes_ -= each.bytes;
        return true;
    });
}

// A stream-ordered pool gives back what is more than its threshold when the host synchronizes.
void Accelerator::trim_pool() {
    if (options_.allocation == AllocationPolicy::stream_ordered) {
        pool_->release(options_.release_threshold_bytes,
                       [this](const SegmentPool::Block& block) { return was_freed(block); });
    }
}

void Accelerator::wait_for_everything(CallSite site) {
    scheduler_.run_all();
    report_failure({"allocate", site});
    streams_.for_each([this](const StreamState& other) {
        host_waited_for(scheduler_.last_epoch(other.lane), other.clock);
    });
}

AllocatorStats Accelerator::allocator_stats() const noexcept {
    AllocatorStats stats = stats_;
    const auto figures = [this](Size size) {
        return AllocatorStats::Bytes{ledger_.now(MemoryKind::device, size),
                                     ledger_.peak(MemoryKind::device, size)};
    };
    stats.requested = figures(Size::requested);
    stats.allocated = figures(Size::rounded);
    stats.active.now = stats.allocated.now + deferred_bytes_;
    stats.active.peak = std::max(stats_.active.peak, stats.allocated.peak);
    stats.reserved.now = reserved_bytes();
    stats.segments = pool_ ? pool_->segment_count() : 0;
    return stats;
}

std::uint64_t Accelerator::reserved_bytes() const noexcept {
    return pool_ ? pool_->reserved_bytes() : ledger_.now(MemoryKind::device, Size::rounded);
}

void Accelerator::restart_reserved_peaks() noexcept {
    stats_.reserved.peak = reserved_bytes();
    stats_.pinned_reserved.peak = stats_.pinned_reserved.now;
}

std::uint64_t Accelerator::round_pinned(std::uint64_t bytes) const noexcept {
    return options_.pinned == PinnedPolicy::power_of_two ? std::bit_ceil(bytes)
                                                         : round_up(bytes, pinned_alignment_bytes);
}

// PyTorch's allocator keeps what is freed, by size, for as long as the process lives.
PinnedMemory Accelerator::take_cached_pinned(std::uint64_t rounded_bytes) {
    const auto same_size = pinned_cached_.find(rounded_bytes);
    if (same_size == pinned_cached_.end() || same_size->second.empty()) {
        return nullptr;
    }
    PinnedMemory memory = std::move(same_size->second.back());
    same_size->second.pop_back();
    return memory;
}

void Accelerator::check_pinned_quota(std::uint64_t bytes, std::uint64_t rounded_bytes,
                                     std::string_view tag, CallSite site) const {
    const bool fits = rounded_bytes >= bytes && rounded_bytes <= options_.pinned_quota_bytes &&
                      stats_.pinned_reserved.now <= options_.pinned_quota_bytes - rounded_bytes;
    if (fits || SWAPLAB_MUTANT("sim.pinned_quota_unchecked")) {
        return;
    }
    OutOfDeviceMemory::Report report = report_of(MemoryKind::pinned, bytes, rounded_bytes, tag);
    report.site = site;
    report.capacity_bytes = options_.pinned_quota_bytes;
    report.reserved_bytes = stats_.pinned_reserved.now;
    report.largest_hole_bytes = options_.pinned_quota_bytes - stats_.pinned_reserved.now;
    throw OutOfDeviceMemory(std::move(report));
}

PinnedMemory Accelerator::take_pinned(std::uint64_t bytes, std::uint64_t rounded_bytes,
                                      std::string_view tag, CallSite site) {
    PinnedMemory memory = take_cached_pinned(rounded_bytes);
    const std::uint64_t pages_bytes = round_up(rounded_bytes, pinned_alignment_bytes);
    if (memory == nullptr) {
        check_pinned_quota(bytes, rounded_bytes, tag, site);
        memory.reset(
            static_cast<std::byte*>(std::aligned_alloc(pinned_alignment_bytes, pages_bytes)));
        if (memory == nullptr) {
            throw std::bad_alloc();
        }
        reserve_pinned(rounded_bytes);
    }
    std::memset(memory.get(), 0, pages_bytes);
    return memory;
}

void Accelerator::reserve_pinned(std::uint64_t rounded_bytes) noexcept {
    AllocatorStats::Bytes& reserved = stats_.pinned_reserved;
    reserved.now += rounded_bytes;
    reserved.peak = std::max(reserved.peak, reserved.now);
}

void Accelerator::release_pinned() {
    if (!scheduler_.idle()) {
        return;
    }
    if (page_guard_) {
        for (const PinnedBlock& block : pinned_unused_) {
            page_guard_->forget(address_of(block.memory.get()));
        }
    }
    if (options_.pinned == PinnedPolicy::power_of_two) {
        for (PinnedBlock& block : pinned_unused_) {
            pinned_cached_[block.rounded_bytes].push_back(std::move(block.memory));
        }
    }
    pinned_unused_.clear();
}

}  // namespace swaplab::sim
