#pragma once

/// The rules of this source tree that a compiler does not check, each a pure function of one file.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace swaplab::style {

struct File {
    std::string path;  ///< relative to the root of the tree, with '/'
    std::string text;
};

/// "sim/base/random.cpp:12: says what is wrong".
using Complaints = std::vector<std::string>;

struct Rule {
    std::string_view name;
    Complaints (*check)(const File&);
};

[[nodiscard]] const std::vector<Rule>& rules();

/// The rule of that name.
[[nodiscard]] const Rule& rule(std::string_view name);

/// True for files that people write: not test data, not what a tool made.
[[nodiscard]] bool is_written_by_hand(std::string_view path);

}  // namespace swaplab::style
