#pragma once

/// How a device tells that work failed behind the back of the call that issued it.

#include "swaplab/sim/call_site.hpp"
#include "swaplab/sim/error.hpp"

#include <string>

namespace swaplab::sim {

struct LateFailure {
    std::string origin;  ///< the work that failed: "launch adamw"
    CallSite origin_site;
    std::string reason;
};

/// What `operation`, called from `site`, reports.
[[nodiscard]] DeviceLost device_lost(int rank, const LateFailure& failure,
                                     const std::string& operation, CallSite site);

}  // namespace swaplab::sim
