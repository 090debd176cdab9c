#include "table/torn_state.hpp"

#include "swaplab/optim/state_dict.hpp"
#include "swaplab/sim/mutant.hpp"

#include <fmt/format.h>

namespace swaplab::optim {

void refuse_torn(bool torn, int rank, const std::string& operation) {
    if (!torn || SWAPLAB_MUTANT("torn.refused")) {
        return;
    }
    throw TornState(
        fmt::format("rank {}: {} refused: a load or step that failed left the optimizer half "
                    "overwritten\n  do  load a complete checkpoint first",
                    rank, operation),
        {{"operation", operation}, {"rank", fmt::format("rank {}", rank)}});
}

}  // namespace swaplab::optim
