#include "checkpoint/lost_shards.hpp"
#include "checkpoint/tiling.hpp"

#include "swaplab/harness/tensor_reader.hpp"
#include "swaplab/sim/mutant.hpp"
#include "swaplab/sim/units.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace swaplab::harness {

using optim::Mismatch;
using optim::Tensor;

std::vector<Mismatch> TensorReader::check(const std::string& key, const std::string& parameter,
                                          const Tensor& live, int rank) const {
    std::vector<Mismatch> found;
    Mismatch mismatch{rank, parameter, key, optim::to_string(live.global_shape()), "", "", {}};
    const MetadataEntry* entry = checkpoint_->find(key);
    if (entry == nullptr || entry->tensor() == nullptr) {
        mismatch.found = entry == nullptr ? "missing" : "no tensor";
        return {mismatch};
    }
    const TensorEntry& saved = *entry->tensor();
    if (saved.dtype != live.dtype() && !SWAPLAB_MUTANT("read.no_dtype_check")) {
        Mismatch dtype = mismatch;
        dtype.expected = sim::short_name_of(live.dtype());
        dtype.found = sim::short_name_of(saved.dtype);
        found.push_back(std::move(dtype));
    }
    const bool same_shape = saved.global_shape == live.global_shape();
    if (checks_ != Checks::none && !same_shape && !SWAPLAB_MUTANT("read.no_shape_check")) {
        mismatch.found = optim::to_string(saved.global_shape);
        explain_lost_shards(*checkpoint_, saved, live, mismatch);
        found.push_back(std::move(mismatch));
    } else if (checks_ == Checks::full) {
        check_chunks(key, saved, box_of(live, rank), mismatch, found);
    }
    return found;
}

void TensorReader::check_chunks(const std::string& key, const TensorEntry& entry, const Box& mine,
                                Mismatch& mismatch, std::vector<Mismatch>& found) const {
    const std::vector<TilingFault> faults = tiling_faults(entry);
    if (!faults.empty() && !SWAPLAB_MUTANT("read.no_tiling_check")) {
        mismatch.found = "broken tiling";
        mismatch.detail = describe(faults.front(), entry);
        found.push_back(mismatch);
        return;
    }
    for (const StoredChunk& chunk : entry.chunks) {
        std::string fault = file_fault(chunk);
        // Each rank opens the items that it will read; together they open all that hold elements.
        if (fault.empty() && optim::intersect(chunk.box, mine)) {
            fault = header_fault(key, entry, chunk);
        }
        if (!fault.empty()) {
            mismatch.found = std::move(fault);
            mismatch.detail = fmt::format("chunk {} cannot be read", optim::to_string(chunk.box));
            found.push_back(mismatch);
        }
    }
}

/// Why the chunk's item cannot lie where .metadata says; empty when it can.
std::string TensorReader::file_fault(const StoredChunk& chunk) const {
    if (!chunk.stored) {
        return fmt::format("no item for chunk {}", optim::to_string(chunk.box));
    }
    const StoredItem& item = *chunk.stored;
    const auto file = file_bytes_.find(item.relative_path);
    if (file == file_bytes_.end() && !SWAPLAB_MUTANT("read.no_file_check")) {
        return item.relative_path + " missing";
    }
    const std::uint64_t size = file == file_bytes_.end() ? UINT64_MAX : file->second;
    const bool is_cut = item.offset_bytes > size || item.length_bytes > size - item.offset_bytes;
    if (is_cut && !SWAPLAB_MUTANT("read.no_length_check")) {
        return fmt::format("{} truncated: {} B, .metadata needs {} B", item.relative_path,
                           sim::with_thousands(size),
                           sim::with_thousands(item.offset_bytes + item.length_bytes));
    }
    return {};
}

/// What the item itself says against being this chunk; empty when nothing.
std::string TensorReader::header_fault(const std::string& key, const TensorEntry& entry,
                                       const StoredChunk& chunk) const {
    try {
        const ItemHeader header = checkpoint_->read_header(key, chunk);
        const bool same = header.dtype == entry.dtype && header.stored_shape == chunk.box.sizes;
        if (!same && !SWAPLAB_MUTANT("read.no_item_check")) {
            return fmt::format("{} at {} holds {} {}", chunk.stored->relative_path,
                               sim::with_thousands(chunk.stored->offset_bytes),
                               sim::short_name_of(header.dtype),
                               optim::to_string(header.stored_shape));
        }
        return {};
    } catch (const CheckpointCorrupt& error) {
        return error.what();
    }
}

}  // namespace swaplab::harness
