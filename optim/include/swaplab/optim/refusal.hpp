#pragma once

/// Refusing a load on all ranks together.

#include <string>
#include <vector>

#include "swaplab/optim/state_dict.hpp"
#include "swaplab/sim/communicator.hpp"

namespace swaplab::optim {

/// Collective. Gathers the mismatches that each rank found in `subject` (StateSource::name()) and
/// throws CheckpointRejected with all of them, in rank order, on all ranks. Returns on all ranks
/// when nobody found any.
void refuse_together(sim::Communicator& communicator, const std::string& subject,
                     const std::vector<Mismatch>& mine);

}  // namespace swaplab::optim
