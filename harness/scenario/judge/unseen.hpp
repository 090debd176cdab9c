#pragma once

/// What cannot be looked at on a backend that does not see inside of its devices.

#include "scenario/judge/judge.hpp"

#include <string>
#include <vector>

namespace swaplab::harness::scenario {

/// Why `run` shows nothing on its backend; empty: it does.
[[nodiscard]] std::string why_not_here(const Run& run);
/// Checks of what the run's backend cannot see hold, and say so.
void set_unseen_aside(const Run& run, std::vector<Check>& checks);

}  // namespace swaplab::harness::scenario
