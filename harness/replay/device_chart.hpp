#pragma once

/// The run of the devices of one host as a chart for chrome://tracing and ui.perfetto.dev (Trace
/// Event Format, JSON): a process per rank; in it a row per engine (copy in, copy out, compute) and
/// one of the host, and counters of device and pinned bytes, in all and by tag. The times are
/// virtual, in microseconds; `args` has them in picoseconds.

#include "swaplab/sim/simulated_device.hpp"
#include "swaplab/sim/timeline.hpp"

#include <span>
#include <string>
#include <vector>

namespace swaplab::harness {

/// Ranks of one host, in the order of their processes in the chart. Not null.
using RankDevices = std::span<const sim::SimulatedDevice* const>;
/// By rank and operation.
using RankTimes = std::vector<std::vector<sim::OperationTime>>;

/// See timeline(): they share copy engines with nobody, and their host's memory with each other.
[[nodiscard]] RankTimes virtual_times(RankDevices devices, const sim::DeviceProfile& profile);

/// When the last of these operations ends.
[[nodiscard]] std::uint64_t end_picoseconds(const std::vector<sim::OperationTime>& times);

/// `times`: of virtual_times(devices, profile).
[[nodiscard]] std::string chart_json(RankDevices devices, const RankTimes& times,
                                     const sim::DeviceProfile& profile);

}  // namespace swaplab::harness
