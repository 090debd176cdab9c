#pragma once

/// Ranks as child processes over memory that they share. The launcher takes no part in collectives:
/// it watches the ranks and tells the others when one has died or hangs.

#include "world/world_state.hpp"
#include "world/worlds.hpp"

#include <functional>
#include <sys/types.h>
#include <vector>

namespace swaplab::sim {

/// What a child does as soon as it was forked; it does not return.
using BeginRank = std::function<void(WorldState& world, int rank, pid_t launcher)>;

/// `file`: see Board. Returns when all children have ended.
[[nodiscard]] std::vector<RankResult> run_children(const WorldOptions& options, int file,
                                                   const BeginRank& begin);

}  // namespace swaplab::sim
