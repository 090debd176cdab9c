#pragma once

/// Plays one run from its first step to its last, process by process.

#include "scenario/record.hpp"

#include <functional>
#include <string>

namespace swaplab::harness::scenario {

/// Told when a step begins, with its label and time limit, and at the end with "" and 0: for
/// progress and watchdogs.
using OnStep = std::function<void(const std::string& label, std::int64_t timeout_ms)>;

/// Plays `run`. Given checkpoints and gradients are looked for relative to the scenario file.
/// Errors of the story are in the records; throws StorageError when a given file cannot be read.
/// Threads: none of its own; ranks are fibers of the calling thread.
[[nodiscard]] Records play(const Run& run, const OnStep& on_step = {});

/// The run that was never interrupted: the steps of `history` in the world of `present`.
/// `optimizer`: empty for the case's own, else a kind.
[[nodiscard]] Run twin_run(const Run& run, const History& history, const SetUp& present,
                           const std::string& optimizer);

}  // namespace swaplab::harness::scenario
