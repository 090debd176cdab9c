#pragma once

/// Refusing a load on all ranks together.

#include "swaplab/optim/state_dict.hpp"
#include "swaplab/sim/communicator.hpp"

#include <string>
#include <vector>

namespace swaplab::optim {

/// Collective. Gathers the mismatches that each rank found in `subject` (StateSource::name()) and
/// throws CheckpointRejected with all of them, in rank order, on all ranks. Returns on all ranks
/// when nobody found any. `operation` names who asks ("SwapAdamW::load"): ranks that ask for
/// different operations or subjects get CollectiveMismatch. `advice`: as in CheckpointRejected.
void refuse_together(sim::Communicator& communicator, const std::string& operation,
                     const std::string& subject, const std::vector<Mismatch>& mine,
                     const std::string& advice = "");

}  // namespace swaplab::optim
