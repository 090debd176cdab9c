#pragma once

/// The worst peak of a recorded run.

#include "simulated/operation_log.hpp"

#include "swaplab/sim/memory_ledger.hpp"
#include "swaplab/sim/simulated_device.hpp"

namespace swaplab::sim {

/// See SimulatedDevice::worst_peak. Throws what worst_peak(PeakGraph) throws: for sums beyond 2^63
/// bytes.
[[nodiscard]] DevicePeak device_peak(const OperationLog& log, IssuePoint begin, Size size);

}  // namespace swaplab::sim
