#pragma once

/// How CheckpointCorrupt is told.

#include "swaplab/harness/checkpoint.hpp"

#include <optional>
#include <string>

namespace swaplab::harness {

/// Where in a checkpoint something is wrong. `key` may be empty.
struct CorruptPlace {
    std::string directory;
    std::string relative_path;
    std::optional<std::uint64_t> position;
    std::string key;
};

[[nodiscard]] CheckpointCorrupt corrupt(const CorruptPlace& place, const std::string& expected,
                                        const std::string& found);

}  // namespace swaplab::harness
