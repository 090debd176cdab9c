#pragma once

/// Well-formed changes of a state dict: what the `edit` step does.

#include "scenario/language/model.hpp"

#include "swaplab/optim/state_dict.hpp"

namespace swaplab::harness::scenario {

/// Changes `state_dict` (of `rank`) as `step` says. Throws ArgumentError when the step selects
/// nothing there.
void edit_state_dict(optim::StateDict& state_dict, const EditStep& step, int rank);

}  // namespace swaplab::harness::scenario
