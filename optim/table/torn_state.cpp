#include "table/torn_state.hpp"

#include "swaplab/optim/state_dict.hpp"
#include "swaplab/sim/mutant.hpp"

#include <fmt/format.h>

namespace swaplab::optim {

void refuse_torn(const TornMarks& torn, int rank, const std::string& operation) {
    if (!torn.any() || SWAPLAB_MUTANT("torn.refused")) {
        return;
    }
    const std::string what = !torn.parameters ? "moments and steps"
                             : !torn.state    ? "parameters"
                                              : "parameters, moments and steps";
    throw TornState(fmt::format("rank {}: {} refused: {} are half overwritten by a load or step "
                                "that failed\n  do  load {} from a complete checkpoint first",
                                rank, operation, what, what),
                    {{"operation", operation},
                     {"rank", fmt::format("rank {}", rank)},
                     {"expected", "complete " + what},
                     {"found", "half overwritten"}});
}

}  // namespace swaplab::optim
