#pragma once

/// A rank that is a process of its own, and what it leaves for its launcher.

#include "world/world_state.hpp"

#include <optional>
#include <sys/types.h>

namespace swaplab::sim {

/// The calling process ends with its launcher, whose child it must be.
void die_with(pid_t launcher) noexcept;

/// Runs the program as this rank, writes its report and ends the process.
[[noreturn]] void be_rank(WorldState& world, int rank, const RankFunction& program) noexcept;

/// What a rank's report says; nothing where it ended without one.
[[nodiscard]] std::optional<RankResult> read_report(WorldState& world, int rank);

/// The exit status of a rank that ended so.
[[nodiscard]] int status_of(RankResult::End end);

}  // namespace swaplab::sim
