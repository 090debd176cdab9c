#pragma once

/// What was issued and is not known to have run: the driver does not say which work failed.

#include "simulated/clock.hpp"

#include "swaplab/sim/call_site.hpp"

#include <algorithm>
#include <cstdint>
#include <deque>
#include <string>
#include <utility>

namespace swaplab::sim {

struct PendingOperation {
    Epoch epoch;
    std::string name;
    CallSite site;
    bool is_kernel = false;
};

class PendingWork {
  public:
    /// More than this many: the oldest is forgotten.
    static constexpr std::size_t count_max = 4096;

    void add(PendingOperation operation) {
        operations_.push_back(std::move(operation));
        if (operations_.size() > count_max) {
            operations_.pop_front();
        }
    }
    /// Everything that `clock` covers has run.
    void confirm(const VectorClock& clock) {
        operations_.erase(
            std::remove_if(operations_.begin(), operations_.end(),
                           [&](const auto& each) { return clock.covers(each.epoch); }),
            operations_.end());
    }
    /// The first that may have failed; nullptr: nothing is pending.
    [[nodiscard]] const PendingOperation* suspect(bool kernel_failed) const {
        const auto found =
            std::find_if(operations_.begin(), operations_.end(),
                         [&](const auto& each) { return !kernel_failed || each.is_kernel; });
        return found != operations_.end() ? &*found
               : operations_.empty()      ? nullptr
                                          : &operations_.front();
    }

  private:
    std::deque<PendingOperation> operations_;
};

}  // namespace swaplab::sim
