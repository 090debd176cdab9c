#pragma once

/// Where the devices of scenarios and properties come from, when they are not simulated ones.

#include "swaplab/sim/simulated_device.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace swaplab::harness::scenario {

class Backend {
  public:
    Backend() = default;
    Backend(const Backend&) = delete;
    Backend& operator=(const Backend&) = delete;
    virtual ~Backend() = default;

    /// "CUDA: NVIDIA H200".
    [[nodiscard]] virtual std::string name() const = 0;
    /// Whether its devices know of findings, order and worst peaks as simulated ones do. Others
    /// find nothing, have no trace, and cannot be used in forked processes.
    [[nodiscard]] virtual bool sees_inside() const = 0;
    /// Before the devices of `ranks` ranks are made, which all have these options. Devices made
    /// before must be gone.
    virtual void begin(int ranks, const sim::SimulatedDeviceOptions& options) const = 0;
    [[nodiscard]] virtual std::unique_ptr<sim::SimulatedDevice> make(
        const sim::SimulatedDeviceOptions& options) const = 0;
    /// For sim::Kernel::cuda_launcher: writes `bytes` to device memory.
    [[nodiscard]] virtual std::function<void(void*)> write_launcher(
        void* target, std::vector<std::byte> bytes) const = 0;
};

}  // namespace swaplab::harness::scenario
