#pragma once

/// A disk of a given size.

#include "swaplab/harness/storage.hpp"

#include <cstdint>
#include <memory>

namespace swaplab::harness::scenario {

/// `inner`, which must outlive it, with room for `capacity_bytes` of files. A write beyond that
/// gets through as far as there is room, and is a StorageError "no space left" with fields
/// operation, file, expected and found. What is taken is read off the files, so that ranks need
/// share nothing but them.
[[nodiscard]] std::unique_ptr<Storage> make_limited_storage(Storage& inner,
                                                            std::uint64_t capacity_bytes);

}  // namespace swaplab::harness::scenario
