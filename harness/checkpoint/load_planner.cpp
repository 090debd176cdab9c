#include "checkpoint/planner.hpp"

#include <fmt/format.h>

#include <map>

namespace swaplab::harness {
namespace {

PlanError plan_error(std::string_view pytorch_error, const std::string& key,
                     const std::string& text) {
    return PlanError(text, {{"pytorch_error", std::string(pytorch_error)}, {"key", key}});
}

/// PyTorch's rule, dim by dim; chunks without elements do not meet unless one begins inside
/// another.
std::optional<ReadItem> shared_part(const Box& live, const Box& stored) {
    ReadItem item;
    for (std::size_t dim = 0; dim < live.sizes.size(); ++dim) {
        const std::int64_t live_end = live.offsets[dim] + live.sizes[dim];
        const std::int64_t stored_end = stored.offsets[dim] + stored.sizes[dim];
        if (live.offsets[dim] >= stored_end || stored.offsets[dim] >= live_end) {
            return std::nullopt;
        }
        const std::int64_t begin = std::max(live.offsets[dim], stored.offsets[dim]);
        item.in_live.push_back(begin - live.offsets[dim]);
        item.in_stored.push_back(begin - stored.offsets[dim]);
        item.lengths.push_back(std::min(live_end, stored_end) - begin);
    }
    item.is_tensor = true;
    item.live_offset = live.offsets;
    item.stored_offset = stored.offsets;
    return item;
}

void check_leaf(const LiveLeaf& leaf, const MetadataEntry* entry) {
    if (entry == nullptr) {
        throw plan_error("RuntimeError", leaf.key,
                         fmt::format("the checkpoint has no key {}", leaf.key));
    }
    const TensorEntry* saved = entry->tensor();
    if (saved != nullptr && !leaf.is_tensor) {
        throw plan_error("ValueError", leaf.key,
                         fmt::format("{} is a tensor in the checkpoint and none here", leaf.key));
    }
    if (saved != nullptr && saved->global_shape != leaf.global_shape) {
        throw plan_error("ValueError", leaf.key,
                         fmt::format("{} has shape {} in the checkpoint and {} here", leaf.key,
                                     optim::to_string(saved->global_shape),
                                     optim::to_string(leaf.global_shape)));
    }
}

}  // namespace

std::vector<ReadItem> make_load_plan(const Metadata& metadata,
                                     const std::vector<LiveLeaf>& leaves) {
    std::map<std::string, const MetadataEntry*> index;
    for (const MetadataEntry& entry : metadata.entries) {
        index.emplace(entry.key, &entry);
    }
    std::vector<ReadItem> items;
    for (const LiveLeaf& leaf : leaves) {
        const auto found = index.find(leaf.key);
        const MetadataEntry* entry = found == index.end() ? nullptr : found->second;
        check_leaf(leaf, entry);
        if (entry->tensor() == nullptr) {
            items.push_back({leaf.key, false, std::nullopt, std::nullopt, {0}, {0}, {0}});
            continue;
        }
        for (const StoredChunk& chunk : entry->tensor()->chunks) {
            if (!leaf.box) {
                break;
            }
            if (std::optional<ReadItem> item = shared_part(*leaf.box, chunk.box)) {
                item->key = leaf.key;
                items.push_back(std::move(*item));
            }
        }
    }
    return items;
}

}  // namespace swaplab::harness
