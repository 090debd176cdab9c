#pragma once

/// Faults with nth = "each": the story once per pass of their point, judged as one.

#include "scenario/judge/judge.hpp"
#include "scenario/play/play.hpp"

#include <cstddef>
#include <vector>

namespace swaplab::harness::scenario {

/// Plays `run` without the fault that has nth = "each" to count the passes of its point, and
/// returns a run for each of them: one at least, so that a point that is never passed shows. A run
/// without such a fault comes back alone. Throws as play() does.
[[nodiscard]] std::vector<Run> runs_of_each_pass(const Run& run, const OnStep& on_step);

/// One of several tellings of a story: "pass 2 of 5", "order 7 of 30".
struct Telling {
    const char* what;
    std::size_t nth;
    std::size_t count;
};

/// Adds what was found in one telling to what was in those before. A check holds when it held each
/// time; of one that did not, the first failure stays.
void add_telling(std::vector<Check>& all, std::vector<Check> found, const Telling& telling);

}  // namespace swaplab::harness::scenario
