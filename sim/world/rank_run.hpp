#pragma once

/// One rank's run of the program, from its start to its result, in every kind of world.

#include "world/fiber.hpp"
#include "world/world_state.hpp"

#include <chrono>
#include <cstdint>
#include <string_view>

namespace swaplab::sim {

/// The program runs in a fiber of its own everywhere, so that a rank that touches device memory can
/// be left in the same way everywhere: its stack is abandoned.
class RankRun {
  public:
    RankRun(WorldState& world, int rank, const RankFunction& program);

    /// What the program asked for when it came back last.
    enum class Wish : std::uint8_t { none, kill, stop, delay };

    /// Runs until the fiber suspends or the rank ends. Returns whether it has ended.
    bool resume();
    /// Runs to the end, and sleeps for each delay: where a rank has a thread of its own.
    void resume_to_end();
    [[nodiscard]] Wish wish() const noexcept { return wish_; }
    [[nodiscard]] std::chrono::milliseconds delay() const noexcept { return delay_; }
    [[nodiscard]] Fiber& fiber() noexcept { return fiber_; }
    [[nodiscard]] RankResult& result() noexcept { return result_; }
    /// After the end: tells the others. `reason`: of a stop.
    void show_end(std::string_view reason = "");

  private:
    void run(const RankFunction& program);

    WorldState& world_;
    int rank_;
    RankResult result_;
    Wish wish_ = Wish::none;
    std::chrono::milliseconds delay_{0};
    Fiber fiber_;
};

}  // namespace swaplab::sim
