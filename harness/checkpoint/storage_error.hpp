#pragma once

/// The sentences that failing file operations are told in.

#include "swaplab/harness/storage.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace swaplab::harness {

/// A StorageError with fields operation, file and reason.
[[nodiscard]] StorageError storage_error(std::string_view operation, const std::string& path,
                                         std::string_view reason, const std::string& text);

/// `path` does not exist: the text names the nearest directory above it that does, and what it
/// holds. Throws nothing itself.
[[nodiscard]] StorageError missing_error(Storage& storage, std::string_view operation,
                                         const std::string& path);

/// `path` ends after `size_bytes`, before a read of `wanted_bytes` at `offset_bytes` was served.
[[nodiscard]] StorageError short_file_error(const std::string& path, std::uint64_t offset_bytes,
                                            std::uint64_t wanted_bytes, std::uint64_t size_bytes);

/// The value of the first field `name`, or empty.
[[nodiscard]] std::string field_of(const sim::Error& error, std::string_view name);

}  // namespace swaplab::harness
