#pragma once

/// What a specimen shows when its story is played: one name per deviation from sound behaviour.

#include <set>
#include <string>
#include <vector>

namespace swaplab::testing {

/// Plays every story with a specimen of `defects` on `ranks` ranks, amsgrad as said, and returns
/// what rank 0 saw. Sound: the empty set.
[[nodiscard]] std::set<std::string> symptoms_of(const std::vector<std::string>& defects, int ranks,
                                                bool amsgrad);

}  // namespace swaplab::testing
