#pragma once

/// Python values and tensor contents as the oracle's JSON files state them.

#include "swaplab/optim/value.hpp"
#include "swaplab/sim/dtype.hpp"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <vector>

namespace swaplab::tests {

using Json = nlohmann::ordered_json;

/// {"t": "int", "v": "5"}, ... of the DCP data.
[[nodiscard]] optim::Value typed_value(const Json& json);
/// Plain JSON of the SwapAdamW data, in which tuples are lists.
[[nodiscard]] optim::Value untyped_value(const Json& json);
/// The same with every tuple as a list.
[[nodiscard]] optim::Value without_tuples(const optim::Value& value);

/// The value formula of the DCP data's README: `elements` little-endian elements of tensor number
/// `fqn_index`, kind `value_kind` (0 parameter, 1 exp_avg, 2 exp_avg_sq, 3 max_exp_avg_sq).
[[nodiscard]] std::vector<std::byte> formula_bytes(sim::DType dtype, std::int64_t elements,
                                                   std::int64_t fqn_index, std::int64_t value_kind);

}  // namespace swaplab::tests
