#pragma once

/// `repeat`: the steps of every round, one after the other.

#include "scenario/language/node.hpp"

namespace swaplab::harness::scenario {

/// Steps that a story has at most: each remembers the set-up and the history before it.
inline constexpr std::size_t max_steps = 500;

/// Puts the steps of all rounds before the step that says `repeat`, which ends the last one and
/// keeps them in `repeat.do`. Labels get the number of the round from the second on. What is not
/// well formed stays as it is, for the checks to report.
void unroll_rounds(Node& document);

}  // namespace swaplab::harness::scenario
