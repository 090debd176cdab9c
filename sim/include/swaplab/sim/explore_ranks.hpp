#pragma once

/// Searching the orders in which ranks can run for one that makes a program fail.

#include "swaplab/sim/world.hpp"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace swaplab::sim {

enum class Search : std::uint8_t {
    fifo,        ///< one run: the lowest rank that can go on does
    random,      ///< each choice drawn alike
    pct,         ///< random priorities that change at a few random points: few, but far, detours
    exhaustive,  ///< every order once
};

struct RankExploration {
    std::uint64_t runs = 0;
    bool complete = false;  ///< exhaustive: no order is left
    std::vector<RankResult> failure;  ///< of the first run in which a rank failed; else empty
    std::vector<int> order;           ///< ranks in the order in which they went on in that run
};

/// Runs what `make` returns, fresh each time because ranks may share variables, as fibers until a
/// run fails or `runs_max` have passed. `options.seed` is that of the search; kind and deadline do
/// not matter. With the same arguments it does the same. Throws DeviceError when an exhaustive
/// search repeats its choices and other ranks can go on than before: the program changes by itself.
[[nodiscard]] RankExploration explore_ranks(const WorldOptions& options,
                                            const std::function<RankProgram()>& make, Search search,
                                            std::uint64_t runs_max);

}  // namespace swaplab::sim
