#pragma once

/// How far one word is from another, for messages that name the nearest known one.

#include <cstddef>
#include <string_view>

namespace swaplab::harness {

/// Insertions, deletions and replacements that turn `a` into `b`.
[[nodiscard]] std::size_t edit_distance(std::string_view a, std::string_view b);

}  // namespace swaplab::harness
