#pragma once

/// Plays one run from its first step to its last, process by process.

#include "scenario/play/rank_story.hpp"

#include <string>

namespace swaplab::harness::scenario {

/// Plays `run`. Given checkpoints and gradients are looked for relative to the scenario file.
/// Errors of the story are in the records; throws StorageError when a given file cannot be read, or
/// when there is no room for what ranks of another process tell. Ranks are what the run's world
/// says. Where they are processes the caller's must have one thread; they watch their steps
/// themselves, so that `on_step` is told a limit of 0.
[[nodiscard]] Records play(const Run& run, const OnStep& on_step = {});

/// The run that was never interrupted: the steps of `history` in the world of `present`.
/// `optimizer`: empty for the case's own, else a kind. Its ranks are fibers.
[[nodiscard]] Run twin_run(const Run& run, const History& history, const SetUp& present,
                           const std::string& optimizer);

}  // namespace swaplab::harness::scenario
