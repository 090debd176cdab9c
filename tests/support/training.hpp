#pragma once

/// Small training runs on simulated accelerators, for tests.

#include "swaplab/optim/optimizer.hpp"
#include "swaplab/sim/communicator.hpp"
#include "swaplab/sim/fault_plan.hpp"
#include "swaplab/sim/simulated_device.hpp"
#include "swaplab/sim/stream.hpp"
#include "swaplab/sim/world.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace swaplab::support {

/// A value in (-1, 1): a pure function of its arguments, equal in every world, never periodic.
[[nodiscard]] float seeded_value(std::uint64_t seed, std::string_view name, std::int64_t index,
                                 std::int64_t step);

struct ParamSpec {
    std::string name;
    optim::Shape shape;                        ///< global
    std::vector<optim::Placement> placements;  ///< one per mesh axis; empty: a plain tensor
};

/// One rank's accelerator with a model on it. Gradients exist from the start and are absent
/// (has_grad = false) until set_gradients().
class Trainer {
  public:
    /// `mesh` is row-major over all ranks; empty means one axis over all of them.
    Trainer(sim::Communicator& communicator, const std::vector<ParamSpec>& specs,
            sim::SimulatedDeviceOptions options = {}, optim::Shape mesh = {});
    /// On a device of any kind, which has no findings.
    Trainer(sim::Communicator& communicator, const std::vector<ParamSpec>& specs,
            std::unique_ptr<sim::Device> device, const optim::Shape& mesh = {});

    /// Of trainers made with options.
    [[nodiscard]] sim::SimulatedDevice& device() noexcept { return *simulated_; }
    /// The same device behind faults(): parameters and gradients live on this one.
    [[nodiscard]] sim::Device& faulty_device() noexcept { return *faulty_device_; }
    [[nodiscard]] sim::FaultInjector& faults() noexcept { return faults_; }
    [[nodiscard]] sim::Communicator& communicator() noexcept { return communicator_; }
    [[nodiscard]] const std::vector<optim::ParameterPtr>& model() const noexcept { return model_; }
    [[nodiscard]] const optim::ParameterPtr& parameter(const std::string& name) const;
    /// A group of the named parameters, in this order; all of them when `names` is empty.
    [[nodiscard]] optim::ParamGroup group(const optim::AdamWOptions& options = {},
                                          const std::vector<std::string>& names = {}) const;

    /// Gives every parameter its gradient for `step`, and none to those named in `absent`.
    void set_gradients(std::int64_t step, const std::vector<std::string>& absent = {});
    /// `count` optimizer steps with the gradients of steps first, first + 1, ...
    void train(optim::Optimizer& optimizer, std::int64_t first, std::int64_t count);

    /// Bytes of parameters and gradients on the device.
    [[nodiscard]] std::uint64_t resident_bytes() const;
    [[nodiscard]] optim::Dict parameters() const;  ///< owned copies by name
    void set_parameters(const optim::Dict& parameters);

    /// Ends the use of the device; texts of everything it found.
    [[nodiscard]] std::vector<std::string> findings();

  private:
    sim::Communicator& communicator_;
    std::unique_ptr<sim::Device> device_;
    sim::SimulatedDevice* simulated_ = nullptr;
    sim::FaultInjector faults_;
    std::unique_ptr<sim::Device> faulty_device_;
    std::unique_ptr<sim::Stream> stream_;
    std::vector<optim::ParameterPtr> model_;
};

/// Parameters, moments, steps and groups as one owned value, for same_value().
[[nodiscard]] optim::Value everything(const Trainer& trainer, const optim::Optimizer& optimizer);

/// Runs `program` on `size` ranks and rethrows the root cause of a failure.
void on_ranks(int size, const sim::RankProgram& program);

}  // namespace swaplab::support
