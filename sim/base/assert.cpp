#include "swaplab/sim/assert.hpp"

#include <cstdio>
#include <cstdlib>

namespace swaplab::sim {

void assertion_failed(const char* condition, const std::string& message, CallSite site) noexcept {
    std::fprintf(stderr, "%s:%d: assertion failed: %s: %s\n", site.file, site.line, condition,
                 message.c_str());
    std::abort();
}

}  // namespace swaplab::sim
