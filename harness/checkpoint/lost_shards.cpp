#include "checkpoint/lost_shards.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace swaplab::harness {
namespace {

std::optional<int> chunk_writer(const StoredChunk& chunk) {
    return chunk.stored ? writer_of(chunk.stored->relative_path) : std::nullopt;
}

/// A rank and the part of the parameter that it held.
struct Owner {
    int rank = 0;
    Box box;
};

std::string share_text(std::int64_t part, std::int64_t whole) {
    return fmt::format("{} of {} elements ({:.1f} %)", part, whole,
                       100.0 * static_cast<double>(part) / static_cast<double>(whole));
}

/// From the parameter's chunks in the same checkpoint.
std::vector<Owner> owners_when_saved(const Checkpoint& checkpoint, const std::string& parameter,
                                     const Shape& shape) {
    std::vector<Owner> owners;
    for (const std::string& key : {"model." + parameter, parameter}) {
        const MetadataEntry* entry = checkpoint.find(key);
        const TensorEntry* tensor = entry == nullptr ? nullptr : entry->tensor();
        if (tensor == nullptr || tensor->global_shape != shape) {
            continue;
        }
        for (const StoredChunk& chunk : tensor->chunks) {
            const std::optional<int> rank = chunk_writer(chunk);
            if (rank && optim::numel(chunk.box.sizes) > 0) {
                owners.push_back({*rank, chunk.box});
            }
        }
        return owners;
    }
    return owners;
}

/// From the live tensor's mesh, if it is plainly sharded: with replicas nobody knows.
std::vector<Owner> owners_now(const optim::Tensor& live) {
    std::vector<Owner> owners;
    if (!live.shard()) {
        return owners;
    }
    const std::int64_t ranks = optim::numel(live.shard()->mesh);
    for (std::int64_t i = 0; i < ranks; ++i) {
        const auto& named = live.shard()->mesh_ranks;
        const int rank = named.empty() ? static_cast<int>(i) : named[static_cast<std::size_t>(i)];
        const std::optional<Box> box = live.shard()->box_of(rank);
        if (box && optim::numel(box->sizes) > 0) {
            owners.push_back({rank, *box});
        }
    }
    return owners;
}

/// Every element once.
bool is_partition(const std::vector<Owner>& owners, const Shape& shape) {
    std::int64_t elements = 0;
    for (const Owner& owner : owners) {
        elements += optim::numel(owner.box.sizes);
    }
    return elements == optim::numel(shape);
}

/// Fills the ranks other than the survivor; false when the survivor fits no owner.
bool name_lost(const std::vector<Owner>& owners, std::optional<int> writer, const Shape& saved,
               std::vector<int>& lost) {
    bool is_known = std::find(saved.begin(), saved.end(), 0) != saved.end();
    for (const Owner& owner : owners) {
        if (owner.rank == writer && owner.box.sizes == saved) {
            is_known = true;
        } else {
            lost.push_back(owner.rank);
        }
    }
    std::sort(lost.begin(), lost.end());
    lost.erase(std::unique(lost.begin(), lost.end()), lost.end());
    return is_known;
}

}  // namespace

void explain_lost_shards(const Checkpoint& checkpoint, const TensorEntry& saved,
                         const optim::Tensor& live, optim::Mismatch& mismatch) {
    const std::int64_t whole = optim::numel(live.global_shape());
    const std::int64_t there = optim::numel(saved.global_shape);
    if (there >= whole || saved.chunks.size() != 1) {
        return;
    }
    std::vector<Owner> owners =
        owners_when_saved(checkpoint, mismatch.parameter, live.global_shape());
    if (owners.empty()) {
        owners = owners_now(live);
    }
    std::vector<int> lost;
    if (is_partition(owners, live.global_shape()) &&
        name_lost(owners, chunk_writer(saved.chunks.front()), saved.global_shape, lost)) {
        mismatch.lost_ranks = lost;
        mismatch.detail = fmt::format("shard of rank {} lost: {}", fmt::join(lost, ", "),
                                      share_text(whole - there, whole));
    } else {
        mismatch.detail = fmt::format("{} are in no file, whose they were is not known",
                                      share_text(whole - there, whole));
    }
}

}  // namespace swaplab::harness
