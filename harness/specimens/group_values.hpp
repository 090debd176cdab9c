#pragma once

/// Groups of a saved state dict.

#include "swaplab/optim/param_group.hpp"

#include <optional>
#include <string>
#include <vector>

namespace swaplab::harness {

/// The names under "params".
[[nodiscard]] std::vector<std::string> param_names(const optim::Dict& group);

/// The number under `key`; empty when it is missing or no number.
[[nodiscard]] std::optional<double> number_under(const optim::Dict& group, std::string_view key);

/// PyTorch's rule: everything but the parameters comes from `saved`; keys that only the live group
/// has vanish.
void take_group(const optim::Dict& saved, optim::ParamGroup& live);

}  // namespace swaplab::harness
