#pragma once

/// Saves and loads of sharded runs, repeated with the specimens, ours and the train engine.

#include "replay.hpp"

#include "swaplab/harness/checkpoint.hpp"

#include <memory>
#include <string>
#include <vector>

namespace swaplab::oracle {

/// One saved run of the file.
struct ShardCase {
    std::string name;
    std::string variant;
    ModelSpec model;
    std::size_t n = 0;  ///< steps before the save
    bool with_model = true;
    Values initial;
    std::vector<Values> gradients;
};

/// Throws unless the groups hold each parameter once and the data fit the shapes and N.
[[nodiscard]] ShardCase read_shard_case(const Value& one);

/// What a saved run left behind, per rank where it says so.
struct SavedRun {
    std::unique_ptr<harness::Storage> storage;      ///< holds "saved"
    std::vector<Entry> at_n;                        ///< per rank
    std::vector<std::vector<Entry>> uninterrupted;  ///< per rank, the steps after N
    Values full_params;                             ///< at N
    Moments full_moments;                           ///< at N
    bool equals_full_adamw = false;                 ///< bit for bit, in the last step of all
};

[[nodiscard]] SavedRun save_run(const ShardCase& one);
/// The same bits before and after the save.
[[nodiscard]] bool same_run(const SavedRun& a, const SavedRun& b);

/// How a load is to be done.
struct LoadSpec {
    std::string variant;
    harness::Checks checks = harness::Checks::torch;
    bool nan_fill = false;  ///< moments are NaN before the load; no step afterwards
    bool other_hp = false;  ///< the optimizer is built with other hyper-parameters
    bool second_load = false;
};

/// What one rank saw of a load into a fresh optimizer at the saved parameters.
struct LoadedRun {
    std::string error;             ///< empty when it went through
    bool moments_changed = false;  ///< by a failed load
    /// what the load reads into is what the next step reads, where a rank has elements at all
    bool template_aliases = false;
    Entry after;
    std::vector<Entry> trace;  ///< the steps after N
    Entry second_after;        ///< with second_load: after it, and one step later
    Entry second_step;
};

/// Per rank. `world` may differ from the one that saved.
[[nodiscard]] std::vector<LoadedRun> load_run(const ShardCase& one, const SavedRun& saved,
                                              const LoadSpec& spec, int world);

/// This rank's rows of full tensors.
[[nodiscard]] Moments cut(const Moments& full, const ModelSpec& model, int rank);

}  // namespace swaplab::oracle
