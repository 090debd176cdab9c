#pragma once

/// What the properties vary: a small training run that is saved and loaded once, as a value.

#include "swaplab/optim/param_group.hpp"
#include "swaplab/sim/simulated_device.hpp"

#include <rapidcheck.h>

#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

namespace swaplab::properties {

struct StoryParam {
    std::string name;
    optim::Shape shape;
    std::vector<optim::Placement> placements;       ///< while training and saving
    std::vector<optim::Placement> load_placements;  ///< after the load
    std::uint32_t absent = 0;                       ///< bit k: no gradient in training step k
};

struct StoryGroup {
    optim::AdamWOptions options;
    std::vector<StoryParam> params;
};

/// Train, save, load, train. Everything that the outcome may depend on is here.
struct Story {
    enum class Via : std::uint8_t { memory, dcp };

    optim::Shape mesh{1};
    optim::Shape load_mesh{1};
    std::vector<StoryGroup> groups;
    bool last_group_joins_late = false;  ///< by add_param_group, after the first step
    std::int64_t bucket_elements = 1;
    int slots = 1;
    bool keep_slots = false;
    sim::Schedule schedule = sim::Schedule::fifo;
    std::uint64_t seed = 1;
    int steps_before = 1;
    int steps_after = 1;
    Via via = Via::memory;
    bool restart = true;  ///< load into a new optimizer; else into the one that went on training
    std::optional<double> lr_after_load;  ///< written to the first group after the load
};

[[nodiscard]] int world_size(const optim::Shape& mesh);

/// Any legal story. Meshes of 1 to 4 ranks, tensors with 0 and 1 element included.
[[nodiscard]] rc::Gen<Story> any_story();

/// Prints the story as a scenario file.
void showValue(const Story& story, std::ostream& os);

}  // namespace swaplab::properties
