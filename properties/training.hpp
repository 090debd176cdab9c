#pragma once

/// Runs a story on simulated accelerators and collects what the properties look at.

#include "model.hpp"
#include "story.hpp"

#include "swaplab/harness/checkpoint.hpp"
#include "swaplab/optim/optimizer.hpp"
#include "swaplab/sim/communicator.hpp"
#include "swaplab/sim/simulated_device.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace swaplab::harness::scenario {
class Backend;
}

namespace swaplab::properties {

/// The optimizer that a property is about.
struct Subject {
    std::function<std::unique_ptr<optim::Optimizer>(sim::Device&, sim::Communicator&,
                                                    std::vector<optim::ParamGroup>, const Story&)>
        make;
    /// What a train engine checks around it: a faulty subject is let through to its fault.
    harness::Checks checks = harness::Checks::full;
};

/// From now on, stories run on devices of `wanted`, which must outlive them. Worst peaks are
/// known only where it sees inside.
void use_backend(const harness::scenario::Backend& wanted);

[[nodiscard]] Subject swap_adamw();
[[nodiscard]] Subject specimen(std::vector<std::string> defects);

/// Device bytes of one rank, charged and requested.
struct StepFigures {
    int rank = 0;
    int step = 0;
    std::size_t groups = 0;  ///< that the optimizer had
    bool restarted = false;
    std::uint64_t before = 0;
    std::uint64_t rise = 0;
    std::int64_t kept = 0;
    std::uint64_t worst_peak = 0;  ///< of all so far, over all schedules
};
struct LoadFigures {
    int rank = 0;
    std::uint64_t construction_rise = 0;
    std::uint64_t load_rise = 0;
    std::uint64_t worst_before = 0;  ///< what may be occupied when the load begins
    std::uint64_t worst_peak = 0;    ///< during the load, over all schedules
    std::int64_t load_kept = 0;
    std::int64_t load_pinned_kept = 0;
};

struct Outcome {
    GlobalStates state;  ///< at the end, what the next step would read
    std::vector<StepFigures> steps;
    std::vector<LoadFigures> loads;
    std::vector<std::string> findings;
    std::unique_ptr<harness::MemoryStorage> storage;  ///< holds the checkpoint "x" of a dcp story
};

/// Throws what the first rank that failed threw.
[[nodiscard]] Outcome run(const Story& story, const Subject& subject);

}  // namespace swaplab::properties
