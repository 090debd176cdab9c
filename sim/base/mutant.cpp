#include "swaplab/sim/mutant.hpp"

#ifdef SWAPLAB_MUTANTS

#include <cstdlib>
#include <string_view>

namespace swaplab::sim {

bool mutant_active(const char* id) noexcept {
    static const char* const chosen = std::getenv("SWAPLAB_MUTANT");
    return chosen != nullptr && std::string_view(chosen) == id;
}

}  // namespace swaplab::sim

#endif
