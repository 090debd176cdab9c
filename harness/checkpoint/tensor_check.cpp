#include "swaplab/harness/tensor_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace swaplab::harness {

using optim::Mismatch;
using optim::Tensor;

namespace {

std::int64_t volume(const Box& box) {
    return optim::numel(box.sizes);
}

bool inside(const Box& box, const Shape& shape) {
    if (box.offsets.size() != shape.size() || box.sizes.size() != shape.size()) {
        return false;
    }
    for (std::size_t d = 0; d < shape.size(); ++d) {
        if (box.offsets[d] < 0 || box.sizes[d] < 0 || box.offsets[d] + box.sizes[d] > shape[d]) {
            return false;
        }
    }
    return true;
}

/// The rank in PyTorch's file names "__RANK_FILE.distcp".
std::optional<int> writer_of(const StoredChunk& chunk) {
    if (!chunk.stored) {
        return std::nullopt;
    }
    const std::string& path = chunk.stored->relative_path;
    const std::size_t slash = path.rfind('/');
    int rank = 0;
    int file = 0;
    const char* name = path.c_str() + (slash == std::string::npos ? 0 : slash + 1);
    // NOLINTNEXTLINE(cert-err34-c): no match is an answer.
    if (std::sscanf(name, "__%d_%d.distcp", &rank, &file) != 2) {
        return std::nullopt;
    }
    return rank;
}

std::string share(std::int64_t part, std::int64_t whole) {
    return fmt::format(
        "{} of {} elements ({:.1f} %)", part, whole,
        whole == 0 ? 0.0 : 100.0 * static_cast<double>(part) / static_cast<double>(whole));
}

/// Why these chunks are not a tiling of `shape`; empty when they are one.
std::string tiling_fault(const std::vector<StoredChunk>& chunks, const Shape& shape) {
    std::int64_t covered = 0;
    for (std::size_t i = 0; i < chunks.size(); ++i) {
        const Box& box = chunks[i].box;
        if (!inside(box, shape)) {
            return fmt::format("chunk {} lies outside", to_string(box));
        }
        if (volume(box) == 0) {
            continue;
        }
        for (std::size_t j = 0; j < i; ++j) {
            if (volume(chunks[j].box) > 0 && intersect(box, chunks[j].box)) {
                return fmt::format("chunks {} and {} overlap", to_string(chunks[j].box),
                                   to_string(box));
            }
        }
        covered += volume(box);
    }
    const std::int64_t missing = optim::numel(shape) - covered;
    return missing == 0 ? "" : share(missing, optim::numel(shape)) + " are in no chunk";
}

}  // namespace

std::vector<Mismatch> TensorReader::check(const std::string& key, const std::string& parameter,
                                          const Tensor& live, int rank) const {
    std::vector<Mismatch> found;
    Mismatch mismatch{rank, parameter, key, optim::to_string(live.global_shape()), "", "", {}};
    const MetadataEntry* entry = checkpoint_->metadata().find(key);
    if (entry == nullptr || entry->tensor() == nullptr) {
        mismatch.found = entry == nullptr ? "missing" : "no tensor";
        return {mismatch};
    }
    const TensorEntry& saved = *entry->tensor();
    if (saved.dtype != live.dtype()) {
        Mismatch dtype = mismatch;
        dtype.expected = sim::short_name_of(live.dtype());
        dtype.found = sim::short_name_of(saved.dtype);
        found.push_back(std::move(dtype));
    }
    if (checks_ != Checks::none && saved.global_shape != live.global_shape()) {
        mismatch.found = optim::to_string(saved.global_shape);
        name_lost_shards(saved, mismatch);
        found.push_back(std::move(mismatch));
    } else if (checks_ == Checks::full) {
        check_chunks(saved, mismatch, found);
    }
    return found;
}

void TensorReader::check_chunks(const TensorEntry& entry, Mismatch& mismatch,
                                std::vector<Mismatch>& found) const {
    const std::string fault = tiling_fault(entry.chunks, entry.global_shape);
    if (!fault.empty()) {
        mismatch.found = "broken tiling";
        mismatch.detail = fault;
        found.push_back(mismatch);
        return;
    }
    for (const StoredChunk& chunk : entry.chunks) {
        if (!chunk.stored) {
            mismatch.found = fmt::format("no item for chunk {}", to_string(chunk.box));
        } else {
            const StoredItem& item = *chunk.stored;
            const auto file = file_bytes_.find(item.relative_path);
            if (file == file_bytes_.end()) {
                mismatch.found = item.relative_path + " missing";
            } else if (item.offset_bytes > file->second ||
                       item.length_bytes > file->second - item.offset_bytes) {
                mismatch.found =
                    fmt::format("{} truncated: {} B, .metadata needs {} B", item.relative_path,
                                file->second, item.offset_bytes + item.length_bytes);
            } else {
                continue;
            }
        }
        mismatch.detail = fmt::format("chunk {} cannot be read", to_string(chunk.box));
        found.push_back(mismatch);
    }
}

void TensorReader::name_lost_shards(const TensorEntry& entry, Mismatch& mismatch) const {
    const MetadataEntry* model = checkpoint_->metadata().find("model." + mismatch.parameter);
    const TensorEntry* whole = model == nullptr ? nullptr : model->tensor();
    if (whole == nullptr || optim::to_string(whole->global_shape) != mismatch.expected ||
        entry.chunks.size() != 1) {
        return;
    }
    const std::optional<int> writer = writer_of(entry.chunks.front());
    bool kept = false;
    std::vector<int> others;
    std::int64_t lost = 0;
    for (const StoredChunk& chunk : whole->chunks) {
        const std::optional<int> owner = writer_of(chunk);
        if (!owner || volume(chunk.box) == 0) {
            continue;
        }
        if (owner == writer && chunk.box.sizes == entry.global_shape) {
            kept = true;
        } else {
            others.push_back(*owner);
            lost += volume(chunk.box);
        }
    }
    if (!kept && optim::numel(entry.global_shape) != 0) {
        return;
    }
    std::sort(others.begin(), others.end());
    others.erase(std::unique(others.begin(), others.end()), others.end());
    mismatch.lost_ranks = others;
    mismatch.detail = fmt::format("shard of rank {} lost: {}", fmt::join(others, ", "),
                                  share(lost, optim::numel(whole->global_shape)));
}

}  // namespace swaplab::harness
