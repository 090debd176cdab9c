#pragma once

/// The JSON that these commands write, and the shapes file that inspect reads. One line of text each;
/// keys in the order of docs; bit patterns as strings, bytes and elements as integers.

#include <string>

#include "inspect/shard_table.hpp"

namespace swaplab::harness {

[[nodiscard]] std::string to_json(const ShardTable& table);

}  // namespace swaplab::harness
