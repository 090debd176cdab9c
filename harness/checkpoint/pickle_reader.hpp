#pragma once

/// Reading Python pickles without executing them.

#include "checkpoint/format_error.hpp"
#include "checkpoint/pickle_node.hpp"

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace swaplab::harness {

/// Which classes and functions a pickle may name, as "module name", and what happens with others.
struct PickleRules {
    std::span<const std::string_view> allowed_globals;
    bool foreign_allowed = false;  ///< true: foreign nodes; false: FormatError naming the class
};

/// Parses protocols 2 to 5. The graph has at most as many nodes as `bytes` has bytes. Numbers of
/// memo slots and marks are bounded by the input as well, whatever it claims.
[[nodiscard]] PickleGraph read_pickle(std::span<const std::byte> bytes, const PickleRules& rules);

/// Decimal digits of a little-endian two's complement number of any length.
[[nodiscard]] std::string decimal_of(std::string_view little_endian);

}  // namespace swaplab::harness
