#pragma once

/// Somebody else's memory: what `hold` takes and `release` gives back.

#include "scenario/language/model.hpp"

#include "swaplab/sim/buffer.hpp"
#include "swaplab/sim/stream.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <string>

namespace swaplab::harness::scenario {

/// By name, on one rank. Device memory is freed in the order of `stream`. Device and stream must
/// outlive it. Threads: the rank's.
class HeldMemory {
  public:
    /// The amount of `step` is read with `units`. `faulty` hands on to `device`, which gives what
    /// is outside of its pool, without faults. Throws OutOfDeviceMemory; ArgumentError for an
    /// amount that is no number of bytes above 0.
    void hold(const HoldStep& step, const UnitValues& units, sim::Device& device,
              sim::Device& faulty, sim::StreamRef stream);
    void release(const std::string& name) { held_.erase(name); }
    /// As a process gives back everything when it ends.
    void release_all() { held_.clear(); }

  private:
    /// Device memory beside the pool, freed in the order of its stream.
    class Outside {
      public:
        Outside(sim::Device& device, std::uint64_t bytes, sim::StreamRef stream,
                const std::string& tag)
            : device_(device),
              pointer_(device.allocate_outside_pool(bytes, stream, tag)),
              stream_(stream) {}
        Outside(const Outside&) = delete;
        Outside& operator=(const Outside&) = delete;
        ~Outside() { device_.deallocate(pointer_, stream_); }

      private:
        sim::Device& device_;
        void* pointer_;
        sim::StreamRef stream_;
    };
    struct Buffers {
        sim::DeviceBuffer device;
        std::unique_ptr<Outside> outside;
        sim::PinnedBuffer pinned;
        sim::HostBuffer host;
    };
    std::map<std::string, Buffers> held_;
};

}  // namespace swaplab::harness::scenario
