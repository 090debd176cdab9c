#pragma once

/// State dicts of a table of parameters.

#include "table/param_table.hpp"

#include "swaplab/optim/state_dict.hpp"

#include <functional>

namespace swaplab::optim {

/// The live moments of a parameter, in the order of ParamTable::moment_keys; none when it has no
/// state yet.
using MomentsOf = std::function<std::vector<Tensor>(ParamId)>;

[[nodiscard]] StateDict make_state_dict(const ParamTable& table, const MomentsOf& moments_of,
                                        Snapshot how);

}  // namespace swaplab::optim
