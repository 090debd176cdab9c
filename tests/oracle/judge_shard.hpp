#pragma once

/// What a file of shard cases states about saves and loads, against the replays.

#include "replay_shard.hpp"

#include <map>
#include <set>
#include <string>
#include <vector>

namespace swaplab::oracle {

/// "a.exp_avg": the ranks whose shard is all that the checkpoint holds of this moment. Moments that
/// are complete are absent.
using Survivors = std::map<std::string, std::set<std::int64_t>>;
[[nodiscard]] Survivors survivors_of(const ShardCase& one, const SavedRun& saved);

/// One entry of "ranks": that of rank `rank` before the save and in the uninterrupted run.
[[nodiscard]] std::string compare_rank(const ShardCase& one, const SavedRun& saved,
                                       std::size_t rank, const Value& expected);
/// What the checkpoint holds.
[[nodiscard]] std::string compare_saved(const ShardCase& one, const SavedRun& saved,
                                        const Value& expected);
/// Items ("KEY@OFFSET") that two checkpoints do not have in common, or with other contents.
[[nodiscard]] std::vector<std::string> different_items(const SavedRun& a, const SavedRun& b,
                                                       const std::string& key_prefix);
/// One entry of "loads"; `found` is per rank.
[[nodiscard]] std::string compare_load(const ShardCase& one, const SavedRun& saved,
                                       const std::vector<LoadedRun>& found, const Value& expected);

}  // namespace swaplab::oracle
