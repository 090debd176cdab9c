#pragma once

/// The figures of a device's memory pool: what stream-ordered allocations use of it, and what the
/// pool keeps from everybody else.

#include "swaplab/sim/units.hpp"

#include <algorithm>
#include <cstdint>

namespace swaplab::sim {

/// Memory that a pool got from the device comes in pages, and goes back when the host waits, but
/// for the release threshold (cudaMemPoolAttrReleaseThreshold).
class Pool {
  public:
    static constexpr std::uint64_t page_bytes = std::uint64_t{2} << 20U;

    void take(std::uint64_t bytes) {
        used_bytes_ += bytes;
        used_bytes_max_ = std::max(used_bytes_max_, used_bytes_);
        reserved_bytes_ = std::max(reserved_bytes_, needed_bytes());
        reserved_bytes_max_ = std::max(reserved_bytes_max_, reserved_bytes_);
    }
    void give_back(std::uint64_t bytes) { used_bytes_ -= bytes; }
    /// Keeps at most `bytes` that nothing uses.
    void trim_to(std::uint64_t bytes) {
        reserved_bytes_ = std::max(needed_bytes(), std::min(reserved_bytes_, bytes));
    }
    void release() { trim_to(release_threshold_bytes); }

    [[nodiscard]] std::uint64_t used_bytes() const noexcept { return used_bytes_; }
    [[nodiscard]] std::uint64_t used_bytes_max() const noexcept { return used_bytes_max_; }
    [[nodiscard]] std::uint64_t reserved_bytes() const noexcept { return reserved_bytes_; }
    [[nodiscard]] std::uint64_t reserved_bytes_max() const noexcept { return reserved_bytes_max_; }
    void forget_used_max() noexcept { used_bytes_max_ = used_bytes_; }
    void forget_reserved_max() noexcept { reserved_bytes_max_ = reserved_bytes_; }

    bool destroyed = false;
    std::uint64_t release_threshold_bytes = 0;
    int reuse_follows_events = 1;
    int reuse_is_opportunistic = 1;
    int reuse_adds_dependencies = 1;

  private:
    [[nodiscard]] std::uint64_t needed_bytes() const { return round_up(used_bytes_, page_bytes); }

    std::uint64_t used_bytes_ = 0;
    std::uint64_t used_bytes_max_ = 0;
    std::uint64_t reserved_bytes_ = 0;
    std::uint64_t reserved_bytes_max_ = 0;
};

}  // namespace swaplab::sim
