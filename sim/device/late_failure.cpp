#include "device/late_failure.hpp"

#include <fmt/format.h>

namespace swaplab::sim {

DeviceLost device_lost(int rank, const LateFailure& failure, const std::string& operation,
                       CallSite site) {
    return DeviceLost(
        fmt::format("rank {}: {} ({}) reports that {} ({}) failed as it ran: {}; nothing issued "
                    "since has run, and this device must not be used any more",
                    rank, operation, format_site(site), failure.origin,
                    format_site(failure.origin_site), failure.reason),
        {{"operation", operation},
         {"rank", fmt::format("rank {}", rank)},
         {"site", format_site(site)},
         {"origin", failure.origin},
         {"origin_site", format_site(failure.origin_site)},
         {"reason", failure.reason}});
}

}  // namespace swaplab::sim
