#pragma once

/// The graph of everything issued to a simulated device, for timeline().

#include "simulated/operation_log.hpp"

#include "swaplab/sim/timeline.hpp"

#include <cstdint>
#include <vector>

namespace swaplab::sim {

/// Operations are numbered as in the trace. `launch_bytes`: of each launch, what it reads and
/// writes.
[[nodiscard]] TimedGraph timed_graph(const OperationLog& log,
                                     const std::vector<std::uint64_t>& launch_bytes);

}  // namespace swaplab::sim
