#pragma once

/// A training run for benchmarks: one replicated or row-sharded parameter per rank.

#include "bench_seconds.hpp"

#include "swaplab/harness/train_engine.hpp"
#include "swaplab/optim/optimizer.hpp"
#include "swaplab/sim/communicator.hpp"
#include "swaplab/sim/simulated_device.hpp"
#include "swaplab/sim/stream.hpp"

#include <cstdint>
#include <memory>
#include <vector>

namespace swaplab::bench {

/// The model of one rank, gradients set, on a device of its own.
class BenchRun {
  public:
    /// `elements` of the global parameter; `size` ranks share them by rows.
    BenchRun(sim::Communicator& communicator, std::int64_t elements);

    [[nodiscard]] sim::Device& device() noexcept { return *device_; }
    [[nodiscard]] std::vector<optim::ParameterPtr> model() const { return {param_}; }
    [[nodiscard]] std::vector<optim::ParamGroup> groups() const;
    /// Buckets of 64 Ki elements, 3 slots.
    [[nodiscard]] std::unique_ptr<optim::Optimizer> make_swap_adamw(
        sim::Communicator& communicator);

  private:
    std::unique_ptr<sim::SimulatedDevice> device_;
    sim::Stream stream_;
    optim::ParameterPtr param_;
};

}  // namespace swaplab::bench
