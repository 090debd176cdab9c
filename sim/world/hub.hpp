#pragma once

/// How the ranks of one kind of world wait for each other: all that kinds of worlds differ in while
/// ranks talk.

#include "world/board.hpp"

#include <chrono>

namespace swaplab::sim {

/// What one wait knows about itself.
struct Wait {
    int rank = 0;
    int pauses = 0;
    std::chrono::steady_clock::time_point since{};  ///< of the first pause
    bool counts = true;  ///< false: ranks are still starting, nobody is late
};

class Hub {
  public:
    virtual ~Hub() = default;
    /// Lets others run for a moment; comes before any sleep. false: sleeping is better now.
    [[nodiscard]] virtual bool pause(Wait& wait) = 0;
    /// Sleeps until the bell of `slot` differs from `seen`, or for a short while. false: it has
    /// waited long enough, what it waits for will not come.
    [[nodiscard]] virtual bool sleep(Wait& wait, Slot& slot, std::uint32_t seen) = 0;
    /// Wakes the rank of `slot`; its bell was rung already.
    virtual void wake(int rank, Slot& slot) = 0;
};

}  // namespace swaplab::sim
