#pragma once

/// What PyTorch's .metadata file says about a checkpoint (docs/checkpoint_format.md).
/// Source: torch.distributed.checkpoint.metadata and .filesystem of PyTorch 2.8.

#include "swaplab/optim/sharding.hpp"
#include "swaplab/optim/value.hpp"
#include "swaplab/sim/dtype.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace swaplab::harness {

using optim::Box;
using optim::Shape;

/// Where the bytes of one item are: MetadataIndex -> _StorageInfo.
struct StoredItem {
    std::string relative_path;
    std::uint64_t offset_bytes = 0;
    std::uint64_t length_bytes = 0;
    friend bool operator==(const StoredItem&, const StoredItem&) = default;
};

/// The rank in PyTorch's names of data files: 3 for "__3_0.distcp". Empty for other names.
[[nodiscard]] std::optional<int> writer_of(const std::string& relative_path);

/// One stored part of a tensor. `stored` is empty when .metadata names the chunk but no item.
struct StoredChunk {
    Box box;
    std::optional<StoredItem> stored;
    std::optional<std::int64_t> index_hint;
};

struct TensorEntry {
    sim::DType dtype = sim::DType::float32;
    Shape global_shape;
    std::vector<StoredChunk> chunks;
    std::string layout = "torch.strided";
    std::string memory_format = "contiguous_format";
    bool requires_grad = false;
    bool pin_memory = false;
};

struct BytesEntry {
    std::optional<StoredItem> stored;
};

/// One key of the flattened state dict.
struct MetadataEntry {
    std::string key;                 ///< the path joined by '.'
    std::vector<optim::Value> path;  ///< strings and ints; empty when .metadata has none
    std::variant<TensorEntry, BytesEntry> data;

    [[nodiscard]] const TensorEntry* tensor() const noexcept {
        return std::get_if<TensorEntry>(&data);
    }
};

struct Metadata {
    std::vector<MetadataEntry> entries;  ///< in stored order
    /// Keys in the order of the state dict that was saved (planner_data); empty when not told.
    std::vector<std::string> state_dict_order;
    std::string checkpoint_id;  ///< empty when absent
    std::string save_id;        ///< empty when absent
    std::optional<std::string> version;

    /// Walks the entries: for one look. Checkpoint::find has an index.
    [[nodiscard]] const MetadataEntry* find(const std::string& key) const;
};

}  // namespace swaplab::harness
