#include "checkpoint/block_writer.hpp"

#include "swaplab/sim/assert.hpp"

#include <algorithm>
#include <cstring>

namespace swaplab::harness {

BlockWriter::BlockWriter(WritableFile& file, std::uint64_t block_bytes)
    : file_(file), block_(std::max<std::uint64_t>(block_bytes, 1)) {}

void BlockWriter::append(std::string_view bytes) {
    while (!bytes.empty()) {
        const std::span<std::byte> place = room(bytes.size());
        std::memcpy(place.data(), bytes.data(), place.size());
        commit(place.size());
        bytes.remove_prefix(place.size());
    }
}

std::span<std::byte> BlockWriter::room(std::uint64_t wanted) {
    if (used_ == block_.size()) {
        flush();
    }
    return std::span(block_).subspan(used_, std::min(wanted, block_.size() - used_));
}

void BlockWriter::commit(std::uint64_t count) {
    SWAPLAB_ASSERT(count <= block_.size() - used_, "more committed than there was room for");
    used_ += count;
}

void BlockWriter::flush() {
    if (used_ > 0) {
        file_.append(std::span(block_).first(used_));
    }
    flushed_ += used_;
    used_ = 0;
}

}  // namespace swaplab::harness
