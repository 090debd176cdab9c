#pragma once

/// The AdamW update as a kernel launch.

#include "swaplab/optim/adamw_kernel.hpp"
#include "swaplab/sim/kernel.hpp"

#include <vector>

namespace swaplab::optim {

/// One launch that updates all `segments`; names every byte that it reads and writes.
[[nodiscard]] sim::Kernel make_adamw_kernel(std::vector<KernelSegment> segments);

}  // namespace swaplab::optim
