#pragma once

/// Where parameters and gradients of scenarios come from: pure functions of the seed, the name, the
/// global index and the training step, so that every world sees the same numbers. Not periodic and
/// not constant: constant gradients hide lost moments (docs/scenarios.md).

#include "swaplab/optim/sharding.hpp"

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

namespace swaplab::harness::scenario {

/// In (-0.5, 0.5).
[[nodiscard]] float seeded_parameter(std::uint64_t seed, std::string_view name, std::int64_t index);

/// In (-1, 1). `training_step` counts from 1.
[[nodiscard]] float seeded_gradient(std::uint64_t seed, std::string_view name, std::int64_t index,
                                    std::int64_t training_step);

/// Row-major positions of the elements of `box` in a tensor of `global_shape`, in local order.
[[nodiscard]] std::vector<std::int64_t> global_indices(const optim::Shape& global_shape,
                                                       const optim::Box& box);

/// "[2,1]" of a row-major position.
[[nodiscard]] std::string index_text(const optim::Shape& shape, std::int64_t position);

}  // namespace swaplab::harness::scenario
