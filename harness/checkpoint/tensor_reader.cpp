#include "swaplab/harness/tensor_reader.hpp"

#include "swaplab/sim/assert.hpp"

#include <algorithm>
#include <cstring>

namespace swaplab::harness {

using optim::Tensor;

namespace {

/// Copies the rows of `part` (row-major bytes in `from`) to where they lie in `whole`'s row-major
/// order, of which `out` is the window that begins at byte `window_offset`.
void scatter(const Box& part, std::span<const std::byte> from, const Box& whole,
             std::uint64_t element_bytes, std::uint64_t window_offset, std::span<std::byte> out) {
    const std::size_t dims = part.sizes.size();
    const std::uint64_t row_elements =
        dims == 0 ? 1 : static_cast<std::uint64_t>(part.sizes[dims - 1]);
    const std::uint64_t row_bytes = row_elements * element_bytes;
    Shape index(dims, 0);
    for (std::uint64_t read = 0; read < from.size(); read += row_bytes) {
        std::uint64_t position = 0;
        for (std::size_t d = 0; d < dims; ++d) {
            position = position * static_cast<std::uint64_t>(whole.sizes[d]) +
                       static_cast<std::uint64_t>(part.offsets[d] + index[d] - whole.offsets[d]);
        }
        const std::uint64_t begin = std::max(position * element_bytes, window_offset);
        const std::uint64_t end =
            std::min(position * element_bytes + row_bytes, window_offset + out.size());
        if (begin < end) {
            std::memcpy(out.data() + (begin - window_offset),
                        from.data() + read + (begin - position * element_bytes), end - begin);
        }
        for (std::size_t d = dims == 0 ? 0 : dims - 1; d-- > 0;) {
            if (++index[d] < part.sizes[d]) {
                break;
            }
            index[d] = 0;
        }
    }
}

}  // namespace

Box box_of(const Tensor& live, int rank) {
    if (live.shard()) {
        if (const auto box = live.shard()->box_of(rank)) {
            return *box;
        }
        return {Shape(live.local_shape().size(), 0), live.local_shape()};
    }
    return {Shape(live.local_shape().size(), 0), live.local_shape()};
}

TensorReader::TensorReader(Checkpoint& checkpoint, Checks checks)
    : checkpoint_(&checkpoint), checks_(checks) {
    if (checks == Checks::full) {
        for (const DirectoryEntry& entry : checkpoint.storage().list(checkpoint.directory())) {
            if (!entry.is_directory) {
                file_bytes_[entry.name] = entry.bytes;
            }
        }
    }
}

void TensorReader::read(const std::string& key, const Tensor& live, int rank,
                        std::uint64_t offset_bytes, std::span<std::byte> out) {
    const MetadataEntry* entry = checkpoint_->metadata().find(key);
    SWAPLAB_ASSERT(entry != nullptr && entry->tensor() != nullptr, "not checked: " + key);
    const Box whole = box_of(live, rank);
    if (out.empty()) {
        return;
    }
    if (checks_ == Checks::full) {
        checkpoint_->read_box(key, whole, offset_bytes, out);
        return;
    }
    const std::uint64_t element_bytes = sim::size_of(live.dtype());
    for (const StoredChunk& chunk : entry->tensor()->chunks) {
        const auto part = intersect(whole, chunk.box);
        if (!part || optim::numel(part->sizes) == 0) {
            continue;
        }
        std::vector<std::byte> bytes(static_cast<std::uint64_t>(optim::numel(part->sizes)) *
                                     element_bytes);
        checkpoint_->read_box(key, *part, 0, bytes);
        scatter(*part, bytes, whole, element_bytes, offset_bytes, out);
    }
}

}  // namespace swaplab::harness
