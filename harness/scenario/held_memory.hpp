#pragma once

/// Somebody else's memory: what `hold` takes and `release` gives back.

#include "scenario/model.hpp"

#include "swaplab/sim/buffer.hpp"
#include "swaplab/sim/stream.hpp"

#include <map>
#include <string>

namespace swaplab::harness::scenario {

/// By name, on one rank. Device memory is freed in the order of `stream`. Device and stream must
/// outlive it. Threads: the rank's.
class HeldMemory {
  public:
    /// The amount of `step` is read with `units`. Throws OutOfDeviceMemory; ArgumentError for an
    /// amount that is no number of bytes above 0.
    void hold(const HoldStep& step, const UnitValues& units, sim::Device& device,
              sim::StreamRef stream);
    void release(const std::string& name) { held_.erase(name); }
    /// As a process gives back everything when it ends.
    void release_all() { held_.clear(); }

  private:
    struct Buffers {
        sim::DeviceBuffer device;
        sim::PinnedBuffer pinned;
        sim::HostBuffer host;
    };
    std::map<std::string, Buffers> held_;
};

}  // namespace swaplab::harness::scenario
