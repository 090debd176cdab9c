#pragma once

/// Columns of text for people.

#include "inspect/look.hpp"

#include <string>
#include <vector>

namespace swaplab::harness {

/// Lines of `rows`, each cell padded to its column's widest one, columns `gap` spaces apart, every
/// line after `indent`. Rows may be shorter than the widest; trailing spaces are not written.
[[nodiscard]] std::string aligned(const std::vector<std::vector<std::string>>& rows,
                                  const std::string& indent, std::size_t gap = 3);

/// The same for rows that begin with a key, below a header: keys are bold, and shrink from their
/// left where a line would be wider than the terminal. Nothing else is ever cut.
[[nodiscard]] std::string aligned_keys(std::vector<std::vector<std::string>> rows,
                                       const std::string& indent, const Look& look);

}  // namespace swaplab::harness
