#pragma once

/// What steps save, change and damage: state dicts in memory, and checkpoint directories.

#include "scenario/play/record.hpp"

#include "swaplab/harness/storage.hpp"

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace swaplab::harness::scenario {

/// One rank's state dict and parameters, in host memory (or live).
struct SavedDict {
    std::vector<std::pair<std::string, optim::Tensor>> params;
    optim::StateDict state;
};

/// One rank's part of something saved.
struct Saved {
    Via via = Via::dcp;
    bool has_model = true;
    bool has_optimizer = true;
    std::optional<History> history;  ///< none: a given checkpoint
    SavedDict dict;                  ///< of memory and live
};

/// By name. Each rank has its own; of directories all ranks know the same.
using Saves = std::map<std::string, Saved>;

/// Throws ArgumentError when nothing was saved under this name (the save failed).
[[nodiscard]] Saved& saved_as(Saves& saves, const std::string& name);

/// Copies a given checkpoint, named relative to `directory`, into `storage`. Throws StorageError.
void import_checkpoint(const CheckpointSpec& checkpoint, const std::string& directory,
                       Storage& storage);

/// Changes the rank's own dict; rank 0 changes directories for all.
void edit_saved(Saves& saves, Storage& storage, const EditStep& step, int rank);
void damage_directory(Storage& storage, const DamageStep& step);

/// Reads what the directory `name` holds now. `saved`: what is known of it. `set_up`: the model
/// that it should cover.
[[nodiscard]] SavedContent directory_content(Storage& storage, const std::string& name,
                                             const Saved& saved, const SetUp& set_up,
                                             bool lazy_state);
/// One rank's part of what a dict holds now; a SavedContent is assembled from those of all.
[[nodiscard]] RankState dict_state(const SavedDict& dict);

}  // namespace swaplab::harness::scenario
