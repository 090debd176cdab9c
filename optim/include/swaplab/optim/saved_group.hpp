#pragma once

/// Reading the groups of a saved state dict.

#include "swaplab/optim/state_dict.hpp"

#include <string>
#include <vector>

namespace swaplab::optim {

/// One saved group, and what is wrong with it.
struct SavedGroup {
    ParamGroup group;                  ///< options and extra keys; no params
    std::vector<std::string> names;    ///< of its parameters
    std::vector<Mismatch> mismatches;  ///< without rank
};

/// Reads saved group number `index`. Missing keys have PyTorch's defaults where it has them
/// (amsgrad, maximize); every other missing, ill-typed or invalid value is a mismatch. Shares no
/// tensor with `saved`. Calls no collective.
[[nodiscard]] SavedGroup read_group(const Dict& saved, std::size_t index);

}  // namespace swaplab::optim
