#pragma once

/// Vector clocks over the lanes of one device.
///
/// A lane is where operations of one stream are counted. The host is no lane: it issues everything,
/// so its clock is what it has waited for.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace swaplab::sim {

using LaneId = std::uint32_t;

/// The `sequence`-th operation of a lane, counted from 1. Sequence 0: no operation.
struct Epoch {
    LaneId lane = 0;
    std::uint64_t sequence = 0;
    friend bool operator==(Epoch, Epoch) = default;
};

/// How many operations of each lane are ordered before some point.
class VectorClock {
  public:
    [[nodiscard]] std::uint64_t at(LaneId lane) const noexcept {
        return lane < counts_.size() ? counts_[lane] : 0;
    }
    [[nodiscard]] bool covers(Epoch epoch) const noexcept {
        return at(epoch.lane) >= epoch.sequence;
    }
    [[nodiscard]] bool covers(const VectorClock& other) const noexcept {
        for (LaneId lane = 0; lane < other.counts_.size(); ++lane) {
            if (at(lane) < other.counts_[lane]) {
                return false;
            }
        }
        return true;
    }
    void advance(Epoch epoch) {
        if (epoch.lane >= counts_.size()) {
            counts_.resize(epoch.lane + std::size_t{1}, 0);
        }
        counts_[epoch.lane] = std::max(counts_[epoch.lane], epoch.sequence);
    }
    void join(const VectorClock& other) {
        counts_.resize(std::max(counts_.size(), other.counts_.size()), 0);
        for (std::size_t lane = 0; lane < other.counts_.size(); ++lane) {
            counts_[lane] = std::max(counts_[lane], other.counts_[lane]);
        }
    }

  private:
    std::vector<std::uint64_t> counts_;
};

}  // namespace swaplab::sim
