#pragma once

/// What steps save, change and damage: state dicts of all ranks, and checkpoint directories.

#include "scenario/record.hpp"

#include "swaplab/harness/storage.hpp"

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace swaplab::harness::scenario {

/// One rank's state dict and parameters, in host memory (or live).
struct SavedDict {
    std::vector<std::pair<std::string, optim::Tensor>> params;
    optim::StateDict state;
};

struct Saved {
    Via via = Via::dcp;
    bool has_model = true;
    bool has_optimizer = true;
    std::shared_ptr<const History> history;  ///< null: a given checkpoint
    std::vector<SavedDict> ranks;            ///< of memory and live
};

/// Everything saved during a run. Ranks of one world share it (they are fibers of one thread).
class Saves {
  public:
    /// `directory` of the scenario file, where given checkpoints are looked for.
    Saves(Storage& storage, std::string directory)
        : storage_(storage), directory_(std::move(directory)) {}

    /// Copies the given checkpoint into the run's storage. Throws StorageError.
    void import(const CheckpointSpec& checkpoint);
    Saved& at(const std::string& name) { return saves_.at(name); }
    Saved& add(const std::string& name) { return saves_[name]; }
    /// Live dicts end with their process.
    void drop_live();

    void edit(const EditStep& step);
    void damage(const DamageStep& step);
    /// Reads what `name` holds now. `set_up`: the model that it should cover.
    [[nodiscard]] SavedContent content(const std::string& name, const SetUp& set_up,
                                       bool lazy_state) const;

  private:
    void edit_directory(const EditStep& step);

    Storage& storage_;
    std::string directory_;
    std::map<std::string, Saved> saves_;
};

/// A communicator of one rank, for work on directories outside a world.
[[nodiscard]] std::unique_ptr<sim::Communicator> make_solo_communicator();

}  // namespace swaplab::harness::scenario
