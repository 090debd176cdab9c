#pragma once

/// One rank's share of a small training run, for tests: device, parameters, gradients.

#include "swaplab/optim/param_group.hpp"
#include "swaplab/sim/communicator.hpp"
#include "swaplab/sim/simulated_device.hpp"
#include "swaplab/sim/stream.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace swaplab::testing {

/// A parameter as its model declares it; Shard(0) over the world.
struct ParamSpec {
    std::string name;
    optim::Shape shape;
};

/// The device, the parameters and their gradients of one rank. Parameters start as a pure function
/// of (name, global index), gradients are one of (name, global index, step).
class Rig {
  public:
    Rig(sim::Communicator& communicator, std::vector<ParamSpec> specs,
        sim::SimulatedDeviceOptions options = {});

    [[nodiscard]] sim::SimulatedDevice& device() noexcept { return *device_; }
    [[nodiscard]] const std::vector<optim::ParameterPtr>& params() const noexcept {
        return params_;
    }
    [[nodiscard]] optim::ParameterPtr param(const std::string& name) const;
    /// One group with every parameter.
    [[nodiscard]] std::vector<optim::ParamGroup> groups(const optim::AdamWOptions& options) const;
    /// Parameters as they were at construction.
    void reset_params();
    /// Gradients of training step `step`; parameters named in `absent` have none.
    void set_grads(std::int64_t step, const std::vector<std::string>& absent = {});
    /// This rank's part of a global row-major tensor, into `tensor`.
    void put(const optim::Tensor& tensor, const std::vector<float>& global);

  private:
    int rank_;
    std::unique_ptr<sim::SimulatedDevice> device_;
    sim::Stream stream_;
    std::vector<ParamSpec> specs_;
    std::vector<optim::ParameterPtr> params_;
};

/// The part of a row-major tensor of `shape` that lies in `box`.
[[nodiscard]] std::vector<float> cut(const std::vector<float>& global, const optim::Shape& shape,
                                     const optim::Box& box);

/// Runs `program` on `ranks` ranks and rethrows the root cause of what they threw.
void run_world(int ranks, const std::function<void(sim::Communicator&)>& program);

}  // namespace swaplab::testing
