#pragma once

/// Adam's counter as checkpoints hold it.

#include "swaplab/optim/state_dict.hpp"

#include <cstdint>
#include <optional>

namespace swaplab::optim {

inline constexpr const char* step_words = "a whole number from 0 to 16777216";

/// A tensor of one element of a type that steps are kept in: float32, float64, int32, int64.
[[nodiscard]] bool is_step_tensor(const SourceEntry& entry);

/// The counter that a number stands for; empty for another kind of value and for what is not whole
/// or not from 0 to step_max.
[[nodiscard]] std::optional<std::int64_t> step_from(const Value& value);

/// Reads the step tensor of `fqn`: a float, or an int for an integer tensor.
[[nodiscard]] Value read_step(StateSource& source, const std::string& fqn, const SourceEntry& entry,
                              int rank);

}  // namespace swaplab::optim
