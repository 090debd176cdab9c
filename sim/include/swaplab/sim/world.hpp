#pragma once

/// Running one program on several ranks.

#include "swaplab/sim/communicator.hpp"

#include <cstdint>
#include <exception>
#include <functional>
#include <vector>

namespace swaplab::sim {

struct WorldOptions {
    int size = 1;            ///< 1 to 64
    std::uint64_t seed = 1;  ///< order in which ranks run between collectives
};

using RankProgram = std::function<void(Communicator&)>;

/// How one rank ended.
struct RankResult {
    /// trapped: it touched device memory from the host, its stack was abandoned.
    enum class End : std::uint8_t { finished, threw, trapped };
    End end = End::finished;
    std::exception_ptr error;  ///< what it threw, or a DeviceError about the touch
};

/// Runs `program` once per rank, as fibers of the calling thread under a seeded scheduler, and
/// returns when all have ended. Ranks switch only inside collectives. A rank that throws or ends
/// early breaks the collectives that others wait in: they get RankLost, never a hang.
/// Throws ArgumentError for a size out of range.
[[nodiscard]] std::vector<RankResult> run_ranks(const WorldOptions& options,
                                                const RankProgram& program);

/// Rethrows the root cause: the error of the lowest rank that did not merely lose another rank.
void rethrow_first(const std::vector<RankResult>& results);

}  // namespace swaplab::sim
