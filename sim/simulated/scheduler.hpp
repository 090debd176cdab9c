#pragma once

/// Lanes of pending operations, and the choice of which of them runs next.

#include "simulated/clock.hpp"
#include "simulated/names.hpp"
#include "simulated/operation.hpp"
#include "simulated/operation_log.hpp"

#include "swaplab/sim/digest.hpp"
#include "swaplab/sim/random.hpp"
#include "swaplab/sim/simulated_device.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace swaplab::sim {

/// Operations of one lane run in issue order; lanes are ordered only by `Operation::after`. An
/// operation depends on earlier issued ones alone, so the oldest pending one can always run.
class Scheduler {
  public:
    using Execute = std::function<void(const Operation&)>;

    /// `log` tells what operations are, and outlives the scheduler.
    Scheduler(const SimulatedDeviceOptions& options, const OperationLog& log, Execute execute);

    /// A lane for a new stream. A lane whose stream was closed is given out again only when `host`
    /// is ordered after all of its work, so that its epochs keep their meaning.
    [[nodiscard]] LaneId open(NameId name, const VectorClock& host);
    /// No more work will come; what is pending still runs.
    void close(LaneId lane) noexcept { lanes_[lane].open = false; }
    [[nodiscard]] NameId name(LaneId lane) const noexcept { return lanes_[lane].name; }

    /// The epoch that the next operation issued to `lane` will have.
    [[nodiscard]] Epoch next_epoch(LaneId lane) const noexcept {
        return {lane, lanes_[lane].issued + 1};
    }
    /// The epoch of the last operation issued to `lane`.
    [[nodiscard]] Epoch last_epoch(LaneId lane) const noexcept {
        return {lane, lanes_[lane].issued};
    }
    void issue(LaneId lane, const Operation& operation);
    [[nodiscard]] bool has_run(Epoch epoch) const noexcept {
        return lanes_[epoch.lane].executed >= epoch.sequence;
    }

    /// Runs operations until `target` has run; `needed` is everything ordered before it and itself.
    void run_until(Epoch target, const VectorClock& needed);
    /// Runs one operation towards `target`, which has not run.
    void run_towards(const VectorClock& needed);
    /// Runs everything; in issue order, unless an order is prescribed.
    void run_all();
    /// Throws ReplayDiverged when a record was to be replayed and more should have run.
    void check_replayed() const;
    /// Calls `begin` once for every operation that is next in its lane and may run.
    template <class Begin>
    void begin_next(Begin begin) {
        for (Lane& lane : lanes_) {
            if (ready(lane) && lane.begun < lane.executed + 1) {
                lane.begun = lane.executed + 1;
                begin(lane.pending.front());
            }
        }
    }
    [[nodiscard]] bool idle() const noexcept { return pending_ == 0; }
    /// Whether this is called by an operation.
    [[nodiscard]] bool running() const noexcept { return running_; }
    /// Whether something that is open happens this time: false under schedules without choice.
    [[nodiscard]] bool chance() { return remember(recorded_chance().value_or(chosen_chance())); }
    /// The same where it changes what is issued: by the seed alone, so that a replay of a record
    /// with the same seed is the same program.
    [[nodiscard]] bool luck();
    /// What these two said.
    [[nodiscard]] const std::vector<bool>& chances() const noexcept { return chances_; }

    /// Digest of ids in the order they ran.
    [[nodiscard]] std::uint64_t digest() const noexcept { return digest_.value(); }
    [[nodiscard]] const std::vector<std::uint64_t>& order() const noexcept { return order_; }

  private:
    struct Lane {
        NameId name = 0;
        bool open = true;
        std::uint64_t issued = 0;
        std::uint64_t executed = 0;
        std::uint64_t begun = 0;     ///< place in the lane of the last one told to begin_next()
        std::uint64_t priority = 0;  ///< of pct: the highest runs
        OperationQueue pending;
    };

    [[nodiscard]] bool ready(const Lane& lane) const noexcept;
    [[nodiscard]] Lane& oldest() noexcept;
    [[nodiscard]] Lane& any_ready() noexcept;
    [[nodiscard]] Lane& youngest_needed(const VectorClock& needed) noexcept;
    [[nodiscard]] Lane& highest_priority() noexcept;
    [[nodiscard]] Lane& recorded();
    [[nodiscard]] Lane& chosen();
    [[nodiscard]] bool chosen_chance();
    [[nodiscard]] std::optional<bool> recorded_chance() const;
    bool remember(bool chance);
    void find_choices();
    void run_front(Lane& lane);
    [[noreturn]] void diverge(const std::string& expected, const std::string& found) const;

    Schedule schedule_;
    const OperationLog& log_;
    Rng rng_;
    std::uint64_t luck_seed_;
    std::uint64_t lucks_ = 0;                   ///< asked for so far
    std::vector<std::uint64_t> change_points_;  ///< of pct: operations before each, largest first
    std::uint64_t changes_ = 0;                 ///< of pct: priorities changed so far
    ExecutionRecord record_;
    std::vector<bool> recorded_chances_;  ///< to be replayed
    std::vector<bool> chances_;           ///< so far
    std::function<std::size_t(std::size_t)> choose_;
    Execute execute_;
    std::vector<Lane> lanes_;
    std::vector<Lane*> choices_;  ///< of find_choices(); kept for its memory
    std::uint64_t pending_ = 0;
    bool running_ = false;  ///< inside an operation, which may not issue others
    RollingDigest digest_;
    std::vector<std::uint64_t> order_;  ///< ids of what ran
};

}  // namespace swaplab::sim
