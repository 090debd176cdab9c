#pragma once

/// Getting parts of stored tensors out of their files.

#include "checkpoint/item_reader.hpp"

#include "swaplab/harness/storage.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace swaplab::harness {

/// How far a record has been read from its first byte on, over any number of reads.
struct ChecksumProgress {
    std::uint64_t position = 0;
    std::uint32_t crc32 = 0;
};

/// A tensor item whose header has been read.
struct StoredPayload {
    StoredTensor tensor;
    std::uint64_t item_offset = 0;  ///< of the item in its file
    bool compared = true;           ///< with its checksum, once it was read
    ChecksumProgress progress;
};

/// Copies what `chunk` (stored as `payload` in `file`) shares with bytes
/// [offset_bytes, offset_bytes + out.size()) of the row-major order of `wanted` into `out`. Returns
/// the number of bytes copied. Throws StorageError, FormatError (checksum; position in the item).
std::uint64_t copy_shared(ReadableFile& file, StoredPayload& payload, const optim::Box& chunk,
                          const optim::Box& wanted, std::uint64_t offset_bytes,
                          std::span<std::byte> out);

}  // namespace swaplab::harness
