#pragma once

/// Whether the files that a load needs are there.

#include "swaplab/harness/checkpoint.hpp"

#include <string>
#include <vector>

namespace swaplab::harness {

/// Data files of `checkpoint` that hold items of keys beginning with `prefix` and are missing or
/// too short for them: one mismatch per file, which is named as its key.
[[nodiscard]] std::vector<optim::Mismatch> find_broken_files(Checkpoint& checkpoint,
                                                             const std::string& prefix, int rank);

}  // namespace swaplab::harness
