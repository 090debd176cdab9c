#pragma once

/// How text for people looks: colours of a terminal, and its width.

#include <cstddef>
#include <string>

namespace swaplab::harness {

struct Look {
    bool all = false;         ///< every row, not the first 8
    bool quiet = false;       ///< verdicts only
    bool color = false;       ///< escape sequences around words
    std::size_t columns = 0;  ///< of the terminal; 0: unlimited
};

/// Marks `text` for dressed() to make it bold; as it is without Look::color. Keys and file names.
[[nodiscard]] std::string bold(const std::string& text, const Look& look);

/// The end of `key` that fits into `room` characters, after "..."; at least 12 stay.
[[nodiscard]] std::string fitted(const std::string& key, std::size_t room);

/// The last step of every text: colours the first word of lines (finding, ok, note, ...),
/// makes bold what bold() marked and control characters harmless. With Look::quiet keeps the lines
/// that begin with finding, cannot tell or sha256.
[[nodiscard]] std::string dressed(const std::string& text, const Look& look);

}  // namespace swaplab::harness
