#pragma once

/// Lanes of pending operations, and the choice of which of them runs next.

#include "simulated/clock.hpp"
#include "simulated/operation.hpp"

#include "swaplab/sim/digest.hpp"
#include "swaplab/sim/random.hpp"
#include "swaplab/sim/simulated_device.hpp"

#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace swaplab::sim {

/// Operations of one lane run in issue order; lanes are ordered only by `Operation::after`. An
/// operation depends on earlier issued ones alone, so the oldest pending one can always run.
class Scheduler {
  public:
    using Execute = std::function<void(const Work&)>;

    Scheduler(Schedule schedule, std::uint64_t seed, Execute execute);

    /// A lane for a new stream. A lane whose stream was closed is given out again only when `host`
    /// is ordered after all of its work, so that its epochs keep their meaning.
    [[nodiscard]] LaneId open(std::string_view name, const VectorClock& host);
    /// No more work will come; what is pending still runs.
    void close(LaneId lane) noexcept { lanes_[lane].open = false; }
    [[nodiscard]] const std::string& name(LaneId lane) const noexcept { return lanes_[lane].name; }

    /// The epoch that the next operation issued to `lane` will have.
    [[nodiscard]] Epoch next_epoch(LaneId lane) const noexcept {
        return {lane, lanes_[lane].issued + 1};
    }
    void issue(LaneId lane, Operation operation);
    [[nodiscard]] bool has_run(Epoch epoch) const noexcept {
        return lanes_[epoch.lane].executed >= epoch.sequence;
    }

    /// Runs operations until `target` has run; `needed` is everything ordered before it and itself.
    void run_until(Epoch target, const VectorClock& needed);
    /// Runs one operation towards `target`, which has not run.
    void run_towards(const VectorClock& needed);
    /// Runs everything, in issue order.
    void run_all();
    [[nodiscard]] bool idle() const noexcept { return pending_ == 0; }

    /// Digest of ids in the order they ran.
    [[nodiscard]] std::uint64_t digest() const noexcept { return digest_.value(); }

  private:
    struct Lane {
        std::string name;
        bool open = true;
        std::uint64_t issued = 0;
        std::uint64_t executed = 0;
        std::deque<Operation> pending;
    };

    [[nodiscard]] bool ready(const Lane& lane) const noexcept;
    [[nodiscard]] Lane& oldest() noexcept;
    [[nodiscard]] Lane& any_ready() noexcept;
    [[nodiscard]] Lane& youngest_needed(const VectorClock& needed) noexcept;
    void run_front(Lane& lane);

    Schedule schedule_;
    Rng rng_;
    Execute execute_;
    std::vector<Lane> lanes_;
    std::uint64_t pending_ = 0;
    RollingDigest digest_;
};

}  // namespace swaplab::sim
