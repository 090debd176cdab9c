#pragma once

/// Who writes what, and who reads what: PyTorch 2.8's default save and load planner.
/// Source: torch.distributed.checkpoint.default_planner, ._dedup_save_plans, .planner_helpers.

#include "checkpoint/state_tree.hpp"

#include "swaplab/harness/dcp_metadata.hpp"
#include "swaplab/sim/error.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace swaplab::harness {

/// A plan that PyTorch's planner raises about. Field pytorch_error: "ValueError", ...
using PlanError = sim::BasicError<sim::ErrorKind::rejected, std::runtime_error>;

/// What one rank offers to write under one key.
struct WriteItem {
    enum class Kind : std::uint8_t {
        tensor,  ///< a plain tensor: offset 0, its own size is the global one
        shard,   ///< this rank's box of a tensor
        bytes,   ///< anything else
    };
    std::string key;
    Kind kind = Kind::bytes;
    Box box;             ///< not for bytes
    Shape global_shape;  ///< not for bytes
    sim::DType dtype = sim::DType::float32;
    bool pin_memory = false;
    std::vector<optim::Value> path;
    std::size_t leaf = 0;  ///< of the rank's state dict; means nothing on other ranks
};

/// The items of one rank, in state dict order.
using LocalPlan = std::vector<WriteItem>;

/// One item for every leaf that `rank` holds a part of: a tensor whose mesh it is outside gives
/// none.
[[nodiscard]] LocalPlan make_local_plan(const std::vector<Leaf>& leaves, int rank);

/// Positions in the local plan that each rank keeps. An item that several ranks offer (equal key
/// and offset, whatever its size) goes to the one with the fewest bytes so far, or to the lowest.
[[nodiscard]] std::vector<std::vector<std::size_t>> deduplicate(const std::vector<LocalPlan>& plans,
                                                                bool to_lowest_rank);

/// One chunk of a global plan and where it comes from.
struct PlannedItem {
    std::size_t position = 0;                ///< in the rank's local plan
    std::optional<std::int64_t> index_hint;  ///< position among the key's chunks
    std::size_t entry = 0;                   ///< in GlobalPlan::entries
};

struct GlobalPlan {
    std::vector<std::vector<PlannedItem>> by_rank;
    std::vector<MetadataEntry> entries;  ///< chunks without items: nothing is written yet
    /// Keys as the lowest ranks that have them order them.
    std::vector<std::string> state_dict_order;
};

/// Joins what is left after deduplicate(). Throws PlanError where PyTorch raises: a plain tensor or
/// value beside parts of the same key, chunks that do not tile their tensor.
[[nodiscard]] GlobalPlan make_global_plan(const std::vector<LocalPlan>& plans,
                                          const std::vector<std::vector<std::size_t>>& kept);

/// What a rank wants to have read under one key.
struct LiveLeaf {
    std::string key;
    bool is_tensor = false;
    Shape global_shape;      ///< of a tensor
    std::optional<Box> box;  ///< of a tensor; empty: this rank holds nothing of it
};

/// One read: from a box of a stored chunk into a box of the live one.
struct ReadItem {
    std::string key;
    bool is_tensor = false;
    std::optional<Shape> live_offset;    ///< of the live chunk; empty for bytes
    std::optional<Shape> stored_offset;  ///< of the stored chunk; empty for bytes
    Shape in_live;                       ///< where to begin in the live chunk
    Shape in_stored;                     ///< where to begin in the stored chunk
    Shape lengths;
};

/// Throws PlanError where PyTorch's strict load planner raises: missing key, other global size,
/// stored tensor for a live value.
[[nodiscard]] std::vector<ReadItem> make_load_plan(const Metadata& metadata,
                                                   const std::vector<LiveLeaf>& leaves);

}  // namespace swaplab::harness
