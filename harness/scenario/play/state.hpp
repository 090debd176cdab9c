#pragma once

/// What a training run holds, as bytes: captured on every rank, assembled to global tensors.

#include "swaplab/optim/optimizer.hpp"
#include "swaplab/sim/simulated_device.hpp"

#include <array>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace swaplab::harness::scenario {

/// One local tensor at one moment.
struct CapturedTensor {
    sim::DType dtype = sim::DType::float32;
    optim::Shape local_shape;
    optim::Shape global_shape;
    std::optional<optim::ShardSpec> shard;
    std::vector<std::byte> bytes;
    sim::MemoryKind memory = sim::MemoryKind::host;
    const std::byte* address = nullptr;  ///< identity only
};

/// Tensors of one parameter by key.
using CapturedKeys = std::map<std::string, CapturedTensor>;

/// One view of an optimizer's state on one rank. None leaves are left out: missing equals None.
struct CapturedView {
    std::map<std::string, CapturedKeys> state;
    std::vector<optim::Dict> groups;
    std::string problem;  ///< why it could not be read; empty: it was
};

enum class View : std::uint8_t { step, state_dict };

/// Everything of one rank after one step.
struct RankState {
    std::map<std::string, CapturedTensor> params;
    std::array<CapturedView, 2> views;  ///< by View
    bool torn = false;
};

[[nodiscard]] CapturedTensor capture_tensor(const optim::Tensor& tensor);
[[nodiscard]] CapturedView capture_view(const optim::StateDict& state_dict);
/// Reads parameters through the device's alias, so that nothing is issued.
[[nodiscard]] RankState capture_rank(const sim::SimulatedDevice& device,
                                     const std::vector<optim::ParameterPtr>& params,
                                     const optim::Optimizer& optimizer);

/// One tensor put together from all ranks.
struct GlobalTensor {
    sim::DType dtype = sim::DType::float32;
    optim::Shape shape;
    std::vector<std::byte> bytes;
    std::optional<optim::ShardSpec> shard;
    std::string problem;  ///< replicas that differ, parts that are no shards
};

using GlobalKeys = std::map<std::string, GlobalTensor>;

struct GlobalView {
    std::map<std::string, GlobalKeys> state;
    std::vector<optim::Dict> groups;
    std::string problem;
};

struct GlobalState {
    std::map<std::string, GlobalTensor> params;
    std::array<GlobalView, 2> views;
};

/// From what all ranks of a world captured after one step.
[[nodiscard]] GlobalState assemble(const std::vector<const RankState*>& ranks);

/// From a whole checkpoint tree, {"model": .., "optimizer": ..}, with tensors in host memory.
[[nodiscard]] GlobalState global_state(const optim::Value& tree);

/// The rank that owns a row-major position of the tensor; 0 for replicas.
[[nodiscard]] int owner_of(const GlobalTensor& tensor, std::int64_t position);

}  // namespace swaplab::harness::scenario
