#pragma once

/// A whole run of one simulated device as a value and as a file: what was called, in which order it
/// ran, on which device; to be run again, looked at, and made smaller.

#include "swaplab/sim/device_program.hpp"
#include "swaplab/sim/simulated_device.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace swaplab::sim {

struct DeviceTrace {
    /// Of the device that was recorded. `record` is what ran, `chances` what became of what was
    /// open; `choose` is never set.
    SimulatedDeviceOptions options;
    DeviceProgram program;
    std::uint64_t digest = 0;  ///< SimulatedDevice::execution_digest()
};

/// The trace of `device`, made with `options` and finished, whose calls are in `program`.
[[nodiscard]] DeviceTrace make_trace(const SimulatedDeviceOptions& options, DeviceProgram program,
                                     const SimulatedDevice& device);

/// A few bytes per call and operation; equal traces give equal bytes on every machine.
[[nodiscard]] std::vector<std::byte> encode(const DeviceTrace& trace);
/// The same trace. Throws ArgumentError with fields `reason` and `offset_bytes` for anything that
/// encode() cannot have written: cut, changed, of another version.
[[nodiscard]] DeviceTrace decode_trace(std::span<const std::byte> bytes);

/// A finished device that did the same again, in the recorded order. It must not outlive `trace`.
/// Throws ReplayDiverged where the program issues something else than was recorded.
[[nodiscard]] std::unique_ptr<SimulatedDevice> replay(const DeviceTrace& trace);

/// The smallest program found by leaving out calls of `trace` (delta debugging: A. Zeller and R.
/// Hildebrandt, "Simplifying and isolating failure-inducing input", 2002) that still has `finding`,
/// word for word, under the plainest schedule that shows it: fifo if that does. No single call can
/// be left out. Throws ArgumentError when no run of `trace` has it: findings of host code
/// (host_touch, undeclared_access, reentrant_call) are not in traces.
[[nodiscard]] DeviceTrace shrink(const DeviceTrace& trace, const Finding& finding);

}  // namespace swaplab::sim
