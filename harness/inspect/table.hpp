#pragma once

/// Columns of text for people.

#include <string>
#include <vector>

namespace swaplab::harness {

/// Lines of `rows`, each cell padded to its column's widest one, columns `gap` spaces apart, every
/// line after `indent`. Rows may be shorter than the widest; trailing spaces are not written.
[[nodiscard]] std::string aligned(const std::vector<std::vector<std::string>>& rows,
                                  const std::string& indent, std::size_t gap = 3);

}  // namespace swaplab::harness
