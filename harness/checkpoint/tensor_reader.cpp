#include "swaplab/harness/tensor_reader.hpp"

#include "swaplab/sim/assert.hpp"

namespace swaplab::harness {

using optim::Tensor;

Box box_of(const Tensor& live, int rank) {
    if (live.shard()) {
        if (const auto box = live.shard()->box_of(rank)) {
            return *box;
        }
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
    const MetadataEntry* entry = checkpoint_->find(key);
    SWAPLAB_ASSERT(entry != nullptr && entry->tensor() != nullptr, "not checked: " + key);
    const Box box = box_of(live, rank);
    if (checks_ == Checks::full) {
        checkpoint_->read_box(key, box, offset_bytes, out);
    } else {
        checkpoint_->read_present(key, box, offset_bytes, out);
    }
}

}  // namespace swaplab::harness
