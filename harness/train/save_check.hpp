#pragma once

/// What speaks against writing a state dict to a checkpoint.

#include "swaplab/optim/optimizer.hpp"

#include <vector>

namespace swaplab::harness {

/// The moments in `state` that are plain tensors though their parameter is sharded over ranks: a
/// checkpoint writer takes such tensors for replicas of one tensor and keeps one rank's.
/// Source: pytorch/pytorch#120356.
[[nodiscard]] std::vector<optim::Mismatch> find_plain_moments(
    const optim::StateDict& state, const std::vector<optim::ParamGroup>& groups, int rank);

}  // namespace swaplab::harness
