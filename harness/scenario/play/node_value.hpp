#pragma once

/// Values of a scenario file as values of a state dict.

#include "scenario/language/node.hpp"

#include "swaplab/optim/value.hpp"

namespace swaplab::harness::scenario {

/// Tables and dates, which no leaf of a state dict holds, become None.
[[nodiscard]] optim::Value to_value(const Node& node);

}  // namespace swaplab::harness::scenario
