#pragma once

/// The JSON that these commands write, and the shapes file that inspect reads. One line of text
/// each; keys in the order of docs; bit patterns as strings, bytes and elements as integers.

#include "inspect/diff_report.hpp"
#include "inspect/report.hpp"
#include "inspect/shard_table.hpp"

#include <string>

namespace swaplab::harness {

[[nodiscard]] std::string to_json(const ShardTable& table);
[[nodiscard]] std::string to_json(const InspectReport& report);
[[nodiscard]] std::string to_json(const DiffReport& report);

/// Reads {"fqn": [dims], ...}. Throws ArgumentError naming `path` for anything else.
[[nodiscard]] std::vector<std::pair<std::string, Shape>> shapes_from_json(const std::string& text,
                                                                          const std::string& path);

}  // namespace swaplab::harness
