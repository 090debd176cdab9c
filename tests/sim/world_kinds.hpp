#pragma once

#include "swaplab/sim/world.hpp"

#include <vector>

namespace swaplab::sim {

// ThreadSanitizer has a thread of its own in every process, and sees nothing between processes.
#if defined(__SANITIZE_THREAD__)
inline const std::vector<WorldKind> kinds{WorldKind::fiber, WorldKind::thread};
#else
inline const std::vector<WorldKind> kinds{WorldKind::fiber, WorldKind::thread, WorldKind::process};
#endif

}  // namespace swaplab::sim
