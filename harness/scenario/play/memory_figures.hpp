#pragma once

/// What a step does to the memory of its rank, as the ledger, the allocator and the proof of worst
/// peaks say.

#include "scenario/play/record.hpp"

#include "swaplab/sim/memory_ledger.hpp"
#include "swaplab/sim/simulated_device.hpp"

namespace swaplab::harness::scenario {

/// Notes what is there before a step; reserved peaks count from now on.
void begin_memory(StepRecord& record, sim::SimulatedDevice& device);
/// Notes what is there after it, and the peaks since `window` was opened.
void end_memory(StepRecord& record, const sim::SimulatedDevice& device,
                const sim::MemoryLedger::Window& window);

/// The same of what may be occupied under some schedule.
void begin_worst(MemoryFigures& worst, const sim::SimulatedDevice& device);
void end_worst(MemoryFigures& worst, const sim::SimulatedDevice& device, sim::IssuePoint begin);

}  // namespace swaplab::harness::scenario
