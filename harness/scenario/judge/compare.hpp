#pragma once

/// Bit by bit: two training states, with the first difference and how many there are.

#include "scenario/language/model.hpp"
#include "scenario/play/state.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace swaplab::harness::scenario {

struct FirstDifference {
    int rank = 0;
    std::string tensor;  ///< "parameter a", "a.exp_avg"
    std::string index;   ///< "[0,1]"
    std::string expected_bits;
    std::string found_bits;
    double expected = 0;
    double found = 0;
    std::uint64_t ulp = 0;
};

/// One pair of tensors (or of values of a group) that was compared.
struct TensorDifference {
    std::string name;           ///< "a", "a.exp_avg", "group 0 lr"
    std::int64_t elements = 0;  ///< compared
    std::int64_t differing = 0;
    double largest = 0;  ///< absolute
    std::string largest_index;
    std::string note;  ///< missing on one side, other shape, replicas that differ
    std::optional<FirstDifference> first;
};

/// Representable values of float32 between the two; -0 and 0 are 1 apart.
[[nodiscard]] std::uint64_t ulp_distance(float a, float b) noexcept;

/// Compares what `subject` and `select` choose. One entry per tensor, equal ones included.
/// `found` is the subject, `expected` the reference. `view`: which of the two views.
[[nodiscard]] std::vector<TensorDifference> compare_states(const GlobalState& found,
                                                           const GlobalState& expected,
                                                           Subject subject, const Selectors& select,
                                                           View view);

/// Compares with a value: every element (or hyper-parameter) must be `value`, or { NAME = value }.
[[nodiscard]] std::vector<TensorDifference> compare_values(const GlobalState& found,
                                                           const Node& value, Subject subject,
                                                           const Selectors& select, View view);

}  // namespace swaplab::harness::scenario
