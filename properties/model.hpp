#pragma once

/// What a story must lead to: plain AdamW over whole tensors in ordinary memory, never interrupted.
/// It shares only the element-wise update with the product, nothing of its buckets, ranks or files.

#include "story.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace swaplab::properties {

/// One parameter with its optimizer state, as global tensors.
struct GlobalState {
    std::vector<float> param;
    std::map<std::string, std::vector<float>> moments;  ///< by PyTorch's key
    std::int64_t step = 0;
};
using GlobalStates = std::map<std::string, GlobalState>;

/// Pure functions of their arguments, equal in every world; neither constant nor periodic.
[[nodiscard]] float initial_value(std::uint64_t seed, const std::string& name, std::int64_t index);
[[nodiscard]] float gradient_value(std::uint64_t seed, const std::string& name, std::int64_t index,
                                   int step);

[[nodiscard]] bool has_gradient(const StoryParam& param, int step);
/// Groups that exist when `step` training steps are done: the late one joins after the first.
[[nodiscard]] std::size_t groups_at(const Story& story, int step);

/// The state after `steps` training steps; with `steps` > story.steps_before, lr_after_load has
/// been set after steps_before of them.
[[nodiscard]] GlobalStates uninterrupted(const Story& story, int steps);

/// "" when equal bit for bit, else where they differ first.
[[nodiscard]] std::string difference(const GlobalStates& expected, const GlobalStates& found);

/// Bytes of the largest parameter's moments of one rank that training step `step` touches.
[[nodiscard]] std::uint64_t largest_touched_bytes(const Story& story, bool restarted, int rank,
                                                  int step, std::size_t groups);

/// "" when each element of a tensor is on as many ranks as its placements replicate it to, else
/// which one is not. `holders`: ranks per element.
[[nodiscard]] std::string coverage_fault(const std::vector<int>& holders, const optim::Shape& mesh,
                                         const std::vector<optim::Placement>& placements);

/// The step that the optimizer trains between save and load when it goes on; all gradients exist.
inline constexpr int stray_step = 31;

/// Bytes of the largest bucket of one rank with the first `groups` groups, and how many buckets
/// training step `step` touches.
struct BucketFigures {
    std::uint64_t slot_bytes = 0;
    std::int64_t touched = 0;
};
[[nodiscard]] BucketFigures bucket_figures(const Story& story, bool restarted, int rank, int step,
                                           std::size_t groups);

/// The placements that hold before or after the restart.
[[nodiscard]] const std::vector<optim::Placement>& placements_of(const StoryParam& param,
                                                                 bool restarted);

}  // namespace swaplab::properties
