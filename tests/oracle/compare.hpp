#pragma once

/// Small comparisons that say in words what is different, and nothing when nothing is.

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <string>

namespace swaplab::oracle {

template <class T>
[[nodiscard]] std::string unequal(const std::string& name, const T& expected, const T& found) {
    return expected == found ? "" : fmt::format("{} expected {}, found {}", name, expected, found);
}

/// The first problem of several.
[[nodiscard]] inline std::string first_of(std::initializer_list<std::string> problems) {
    const auto* found = std::find_if(problems.begin(), problems.end(),
                                     [](const std::string& problem) { return !problem.empty(); });
    return found == problems.end() ? "" : *found;
}

}  // namespace swaplab::oracle
