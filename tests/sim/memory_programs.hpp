#pragma once

/// Programs that allocate and free device memory on several streams, for worst peaks.

#include "swaplab/sim/simulated_device.hpp"

#include <cstdint>
#include <functional>

namespace swaplab::sim {

struct MemoryProgram {
    std::uint64_t seed = 1;
    int length = 40;
    int streams = 3;
};

/// Does the same under every schedule, also where it polls. Some frees are not ordered after their
/// allocation, streams come and go, and all memory is freed at the end. `half_way` is called
/// between two calls.
void run_memory_program(
    SimulatedDevice& device, const MemoryProgram& program,
    const std::function<void()>& half_way = [] {});

}  // namespace swaplab::sim
