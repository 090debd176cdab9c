#pragma once

/// Waiting by the kernel's futex: relative, bounded sleeps on a word that the ranks share.

#include "world/hub.hpp"

namespace swaplab::sim {

class FutexHub final : public Hub {
  public:
    /// Wakes ranks of other processes, too, if they share memory.
    enum class Reach { threads, processes };
    FutexHub(Reach reach, std::chrono::milliseconds deadline) noexcept
        : private_(reach == Reach::threads), deadline_(deadline) {}

    bool pause(Wait& wait) override;
    bool sleep(Wait& wait, Slot& slot, std::uint32_t seen) override;
    void wake(int rank, Slot& slot) override;

  private:
    bool private_;
    std::chrono::milliseconds deadline_;
};

}  // namespace swaplab::sim
