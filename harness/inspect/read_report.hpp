#pragma once

#include "inspect/report.hpp"

namespace swaplab::harness {

/// Everything inspect looks at, not yet judged: findings, unjudged and notes are empty. Reads the
/// header of every tensor item that is wholly there and every object of at most 16 MiB.
[[nodiscard]] InspectReport read_report(Checkpoint& checkpoint);

/// Fills sha256 of every tensor whose chunks are all sound; reads all payload, 1 MiB at a time.
void add_digests(Checkpoint& checkpoint, InspectReport& report);

}  // namespace swaplab::harness
