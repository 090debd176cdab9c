#pragma once

/// Comparing our planner with what PyTorch's planner answered (planner.json).

#include "support/checkpoint_expectation.hpp"

#include <string>

namespace swaplab::tests {

/// Every world: each rank's local plan, both global plans with their metadata or error. Every load
/// pair: each rank's read items or error. `json`: the text of the file.
[[nodiscard]] ExpectationResult check_planner(const std::string& json);

}  // namespace swaplab::tests
