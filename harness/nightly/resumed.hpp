#pragma once

/// One rank of a training run that is saved and resumed.

#include "swaplab/sim/communicator.hpp"
#include "swaplab/sim/device.hpp"

#include <string>

namespace swaplab::harness::nightly {

/// Trains this rank's shards, saves them with the other ranks' as a DCP checkpoint in `directory`,
/// loads that into a new run and trains on. Digest of the rank's parameters then.
[[nodiscard]] std::string resumed_digest(sim::Device& device, sim::Communicator& communicator,
                                         const std::string& directory);

}  // namespace swaplab::harness::nightly
