#pragma once

/// Files that are read and written as a whole.

#include "swaplab/harness/storage.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace swaplab::harness {

/// Throws StorageError, also for a file of more than `most_bytes`.
[[nodiscard]] std::vector<std::byte> read_whole(Storage& storage, const std::string& path,
                                                std::uint64_t most_bytes);

/// Throws StorageError when something of that name is there, and when the file cannot be written:
/// then there is none. Its directory must exist.
void write_new(Storage& storage, const std::string& path, std::span<const std::byte> bytes);
void write_new(Storage& storage, const std::string& path, const std::string& text);

}  // namespace swaplab::harness
