#pragma once

/// The kinds of worlds, each as a function that runs a program in one.

#include "swaplab/sim/world.hpp"

#include <cstddef>
#include <functional>
#include <vector>

namespace swaplab::sim {

/// Throws ArgumentError for options out of range.
void check_options(const WorldOptions& options);

/// Index of the one, of the ranks that can go on, that does so.
using ChooseRank = std::function<std::size_t(const std::vector<std::size_t>& able)>;

[[nodiscard]] std::vector<RankResult> run_fibers(const WorldOptions& options,
                                                 const RankFunction& program,
                                                 const ChooseRank& choose);
[[nodiscard]] std::vector<RankResult> run_threads(const WorldOptions& options,
                                                  const RankFunction& program);
[[nodiscard]] std::vector<RankResult> run_processes(const WorldOptions& options,
                                                    const RankFunction& program);

}  // namespace swaplab::sim
