#pragma once

/// The AdamW update as a kernel launch.

#include "swaplab/optim/adamw_kernel.hpp"
#include "swaplab/sim/kernel.hpp"

#include <cstdint>
#include <vector>

namespace swaplab::optim {

/// One run of elements of one parameter. The arrays are device addresses.
struct KernelSegment {
    AdamWArrays arrays;
    std::int64_t count = 0;
    AdamWScalars scalars;
};

/// One launch that updates all `segments`; names every byte that it reads and writes.
[[nodiscard]] sim::Kernel make_adamw_kernel(std::vector<KernelSegment> segments);

}  // namespace swaplab::optim
