#pragma once

/// The last part of a load: bytes from the source into live moments.

#include "load/load_plan.hpp"

#include "swaplab/sim/device.hpp"

#include <string>
#include <vector>

namespace swaplab::optim {

/// One live moment and where its content comes from.
struct MomentLoad {
    std::string fqn;
    std::string key;
    Tensor live;
    bool in_source = true;  ///< false: becomes zero
};

/// Collective. Fills every moment of `loads`, in blocks of at most 1 MiB of host memory that stand
/// on the ledger as "load block". `torn` is true from the first byte until all ranks have all.
/// With Staging::shadow everything is read into host memory first ("shadow" on the ledger), and
/// live moments change only when all ranks have theirs. Throws on all ranks when reading fails on
/// one.
void apply_moments(const LoadCall& call, const std::vector<MomentLoad>& loads, sim::Device& device,
                   bool& torn);

}  // namespace swaplab::optim
