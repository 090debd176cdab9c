#pragma once

/// The reported faults, alive: one plain per-parameter swap optimizer with named defects.

#include "swaplab/harness/train_engine.hpp"
#include "swaplab/optim/optimizer.hpp"
#include "swaplab/sim/communicator.hpp"
#include "swaplab/sim/device.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace swaplab::harness {

/// What a defect breaks.
enum class DefectPart : std::uint8_t { optimizer, engine };

/// One named defect, for lists, help and messages.
struct DefectInfo {
    std::string_view name;    ///< "stale_groups"
    std::string_view says;    ///< what it does wrong, one sentence
    std::string_view source;  ///< "InternLM/xtuner, before its resume fix", "NVIDIA/apex#766", ...
    DefectPart part = DefectPart::optimizer;
};

/// All defects that exist, in a fixed order.
[[nodiscard]] const std::vector<DefectInfo>& defects();

/// SwapAdamW as it was first published (one parameter at a time, one stream, moments in host
/// memory) with the given defects switched on. Without any it equals SwapAdamW bit for bit. It
/// knows nothing of scenarios or expectations. Throws ArgumentError for an unknown defect, naming
/// the nearest. Defects of the engine do nothing here.
[[nodiscard]] std::unique_ptr<optim::Optimizer> make_specimen(
    sim::Device& device, sim::Communicator& communicator, std::vector<optim::ParamGroup> groups,
    const std::vector<std::string>& defects);

/// Options of a TrainEngine that breaks as the given defects say; those of optimizers do nothing
/// here. Throws as make_specimen().
[[nodiscard]] EngineOptions specimen_engine(EngineOptions sound,
                                            const std::vector<std::string>& defects);

}  // namespace swaplab::harness
