#pragma once

/// What collectives promise, as rank programs that throw where something is wrong: only results
/// come back from processes, and MPI has no launcher of ours.

#include "swaplab/sim/world.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace swaplab::sim {

struct CollectiveProgram {
    std::string_view claim;
    void (*run)(Communicator&);
};

[[nodiscard]] std::vector<CollectiveProgram> collective_programs();

/// A digest of everything that a rank sees of a story of collectives.
[[nodiscard]] std::string story_of_collectives(Communicator& world);

}  // namespace swaplab::sim
