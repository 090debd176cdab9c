#pragma once

/// The judgements of inspect: each adds to findings, unjudged and notes of a report that was read.

#include "inspect/report.hpp"
#include "inspect/roles.hpp"

#include <set>
#include <string>
#include <vector>

namespace swaplab::harness {

/// missing_file, truncated_file, short_item, unreadable_item, exchanged_chunks, bad_metadata: what
/// is stored against what .metadata says is stored.
void find_item_faults(InspectReport& report);

/// out_of_bounds, overlap, gap: whether chunks tile their tensors.
void find_tiling_faults(InspectReport& report);

/// lost_shards, and unjudged where neither the directory nor `against` knows a parameter's shape.
/// Ranks and ranges are named only where file names leave one answer.
void find_lost_shards(InspectReport& report, const KnownShapes* against);

/// Every value stored under one step key: of all its chunks and elements.
struct StoredSteps {
    std::string key;
    Shape shape;
    std::vector<double> steps;
};

/// impossible_step, step_disagreement, and a note when parameters are at different steps.
void judge_steps(const std::vector<StoredSteps>& all, InspectReport& report);
/// The same of the steps in `checkpoint`, which it reads.
void find_step_faults(Checkpoint& checkpoint, InspectReport& report);

/// Class names of everything in `value` that was not opened.
[[nodiscard]] std::set<std::string> foreign_classes(const optim::Value& value);

/// Notes: files with bytes that .metadata does not name, objects of classes that are not opened, no
/// optimizer state.
void add_notes(InspectReport& report);

}  // namespace swaplab::harness
