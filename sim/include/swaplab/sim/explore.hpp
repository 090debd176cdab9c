#pragma once

/// Runs a program under every legal order of its operations.

#include <cstdint>
#include <functional>

#include "swaplab/sim/simulated_device.hpp"

namespace swaplab::sim {

struct Exploration {
    std::uint64_t orders = 0;  ///< how many were run
    bool complete = false;     ///< whether that were all
};

/// Calls `program` once for each order in which its operations may run (records and waits apart:
/// they change no byte), each time on a fresh device of `options` (the schedule is chosen here),
/// and stops after `limit` orders. The device is finished after each call, so the program must free
/// what it made; to run one order again, keep its execution_record() and use Schedule::replay.
/// The program must do the same whenever it sees the same bytes: throws DeviceError when it does
/// not. What the program throws ends the exploration.
[[nodiscard]] Exploration explore(const SimulatedDeviceOptions& options,
                                  const std::function<void(SimulatedDevice&)>& program,
                                  std::uint64_t limit);

}  // namespace swaplab::sim
