#pragma once

/// One call of the device seam, and how a device refuses it.

#include "swaplab/sim/call_site.hpp"
#include "swaplab/sim/error.hpp"

#include <string>
#include <string_view>

namespace swaplab::sim {

struct Caller {
    std::string_view operation;
    CallSite site;
    std::string_view subject = {};  ///< name of a kernel or function
    [[nodiscard]] std::string text() const;
};

/// For arguments that can never be right. Fields: rank, operation, site, then `fields`.
[[nodiscard]] ArgumentError refusal(int rank, const Caller& caller, const std::string& reason,
                                    ErrorFields fields = {});

}  // namespace swaplab::sim
