#pragma once

/// What a run saw: per step and rank, everything that expectations may ask for.

#include "scenario/language/model.hpp"
#include "scenario/play/state.hpp"

#include "swaplab/harness/storage.hpp"
#include "swaplab/sim/memory_ledger.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace swaplab::harness::scenario {

/// Requested and rounded bytes.
struct Bytes2 {
    std::int64_t requested = 0;
    std::int64_t rounded = 0;
};

/// One kind of memory during one step.
struct MemoryFigures {
    Bytes2 before, peak, now;
    std::map<std::string, Bytes2> tags_before, tags_at_peak, tags_now;
};

/// An error as it reached one rank.
struct StepError {
    std::string kind;  ///< empty: an exception of nobody's hierarchy
    sim::ErrorFields fields;
    std::string text;
};

/// The training steps and changes that led to the present state, by their places in the run.
struct History {
    std::size_t process = 0;         ///< in which it began: its first step
    std::vector<std::size_t> steps;  ///< train, set, add_param_group
    bool known = true;               ///< false after a given checkpoint was loaded
    std::int64_t training_steps = 0;
};

struct StepRecord {
    bool reached = false;
    bool ended = false;  ///< it returned or threw; false: the rank was trapped
    std::optional<StepError> error;
    bool fault_happened = true;      ///< of the fault that the step has on this rank
    std::uint64_t fault_passes = 0;  ///< that it could have struck
    bool too_slow = false;
    std::int64_t spent_ms =
        0;  ///< until it returned or threw; no result, only compared with limits
    std::array<MemoryFigures, sim::memory_kind_count> memory;
    std::optional<MemoryFigures> worst;  ///< of the device, requested bytes; where asked for
    std::array<MemoryFigures, sim::memory_kind_count> occupied;  ///< as observed; without tags
    /// Device and pinned, by their allocators; before and now, without tags.
    std::array<MemoryFigures, 2> reserved;
    std::vector<sim::TraceEvent> trace;
    std::vector<StorageOperation> storage;
    std::vector<sim::Finding> findings;
    RankState before, after;
    UnitValues units;
    std::optional<History> history;  ///< after the step
};

/// One tensor of a checkpoint against what the model needs.
struct CoverRow {
    std::string param, key;  ///< key empty: the parameter
    std::int64_t elements = 0;
    std::int64_t missing = 0;
    std::int64_t repeated = 0;
};

struct FileRow {
    std::string name;
    std::uint64_t bytes = 0;
    std::string sha256;
};

/// Something saved, as it was when a step ended.
struct SavedContent {
    std::string problem;  ///< why it cannot be read
    GlobalState state;
    std::vector<CoverRow> cover;
    std::vector<FileRow> files;
};

/// One step on all ranks.
struct StepRecords {
    std::vector<StepRecord> ranks;
    std::map<std::string, SavedContent> saved;  ///< those that the step's expectations name
};

/// The run of one rank's device in one process.
struct RankTrace {
    std::size_t process = 1;  ///< of the story, from 1 on
    int rank = 0;
    std::string profile;          ///< device.profile of the process
    std::vector<std::byte> file;  ///< sim::encode() of it
};

struct Records {
    std::vector<RankState> start;    ///< by rank, of the first process
    std::vector<StepRecords> steps;  ///< as far as the story went
    bool complete = false;           ///< it reached its end
    std::vector<sim::Finding> end_findings;
    std::map<std::string, SavedContent> end_saved;  ///< for final expectations
    std::uint64_t digest = 0;                       ///< of the order in which operations ran
    std::vector<RankTrace> traces;                  ///< of a run that is traced; by process, rank
    Orders orders;                                  ///< with every_order: those that were taken
};

/// The set-up in which the process that begins at step `first` is built.
[[nodiscard]] const SetUp& set_up_of_process(const Run& run, std::size_t first);

/// What one of each derived unit is worth on `rank`. `without_gradient`: names.
[[nodiscard]] UnitValues unit_values(const SetUp& set_up, int rank,
                                     const std::vector<std::string>& without_gradient);

}  // namespace swaplab::harness::scenario
