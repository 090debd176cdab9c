#pragma once

/// What was issued, from where.

#include "swaplab/sim/call_site.hpp"
#include "swaplab/sim/simulated_device.hpp"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace swaplab::sim {

/// All operations of one device in issue order; the place in it is the operation's id.
class OperationLog {
  public:
    std::uint64_t add(TraceEvent event, CallSite site) {
        trace_.push_back(std::move(event));
        sites_.push_back(site);
        return trace_.size() - 1;
    }
    [[nodiscard]] const std::vector<TraceEvent>& trace() const noexcept { return trace_; }
    /// "copy h2d on upload (swap_adamw.cpp:12)".
    [[nodiscard]] std::string describe(std::uint64_t id) const {
        const TraceEvent& event = trace_[id];
        return event.operation + (event.stream.empty() ? "" : " on " + event.stream) + " (" +
               format_site(sites_[id]) + ")";
    }
    [[nodiscard]] const TraceEvent& event(std::uint64_t id) const { return trace_[id]; }
    [[nodiscard]] CallSite site(std::uint64_t id) const { return sites_[id]; }

  private:
    std::vector<TraceEvent> trace_;
    std::vector<CallSite> sites_;
};

}  // namespace swaplab::sim
