#pragma once

/// Faults with nth = "each": the story once per pass of their point, judged as one.

#include "scenario/judge.hpp"
#include "scenario/play.hpp"

#include <cstddef>
#include <vector>

namespace swaplab::harness::scenario {

/// Plays `run` without the fault that has nth = "each" to count the passes of its point, and
/// returns a run for each of them: one at least, so that a point that is never passed shows. A run
/// without such a fault comes back alone. Throws as play() does.
[[nodiscard]] std::vector<Run> runs_of_each_pass(const Run& run, const OnStep& on_step);

/// Adds what was found with the fault at pass `nth` of `count`. A check holds when it held at each
/// pass; of one that did not, the first failure stays.
void add_pass(std::vector<Check>& all, std::vector<Check> found, std::size_t nth,
              std::size_t count);

}  // namespace swaplab::harness::scenario
