#pragma once

#include "swaplab/harness/storage.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace swaplab::harness {

/// Collects small pieces into one block before they reach the file. The file must outlive it; what
/// was not flushed when it ends is lost.
class BlockWriter {
  public:
    BlockWriter(WritableFile& file, std::uint64_t block_bytes);

    void append(std::string_view bytes);
    /// Room for at most `wanted` bytes, never none (`wanted` > 0), to be filled and given to
    /// commit().
    [[nodiscard]] std::span<std::byte> room(std::uint64_t wanted);
    void commit(std::uint64_t count);
    void flush();
    /// Bytes appended so far.
    [[nodiscard]] std::uint64_t position() const noexcept { return flushed_ + used_; }

  private:
    WritableFile& file_;
    std::vector<std::byte> block_;
    std::uint64_t used_ = 0;
    std::uint64_t flushed_ = 0;
};

}  // namespace swaplab::harness
