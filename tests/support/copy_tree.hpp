#pragma once

#include "swaplab/harness/storage.hpp"

#include <memory>
#include <string>

namespace swaplab::tests {

/// A directory of the real file system, flat, as `directory` of a storage in memory.
[[nodiscard]] std::unique_ptr<harness::MemoryStorage> copy_to_memory(const std::string& from,
                                                                     const std::string& directory);

}  // namespace swaplab::tests
