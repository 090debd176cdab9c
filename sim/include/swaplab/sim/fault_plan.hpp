#pragma once

/// Faults as data: what goes wrong, where, and the how-manieth time. Wrappers around seams ask an
/// injector at every pass of a point; nothing behind the seam knows of it.

#include "swaplab/sim/device.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace swaplab::sim {

/// fail: the call throws the seam's own error and does nothing.
/// foreign: the call throws an InjectedException and does nothing.
/// kill: the rank ends there, as if its process were killed (kill_rank()).
/// stop: the rank makes no progress from there on, as after SIGSTOP (stop_rank()).
/// delay: the rank goes on from there after Fault::delay (delay_rank()); the call succeeds.
/// late: a copy, fill or launch is issued and fails as it runs. Nothing issued after it runs. A
/// later call reports it as a DeviceLost with both operations; so does every call from then on.
/// flip: one bit of what a copy brings is wrong.
/// postpone: a query answers that the work has not run, and runs nothing.
/// slow: a copy is made Fault::times times over, as on a link that sends again: it brings the right
/// bytes in so many times the time.
enum class FaultAction : std::uint8_t {
    fail, foreign, kill, stop, delay, late, flip, postpone, slow
};

/// One pass of a point where something may go wrong.
struct FaultPoint {
    std::string_view seam;       ///< "device", "storage", or a word of the caller's
    std::string_view operation;  ///< of devices: see make_faulty_device()
    std::string_view tag = {};   ///< of the memory, or the file concerned
    std::uint64_t bytes = 0;
};

struct Fault {
    std::string seam = "device";
    std::string operation;
    std::uint64_t ordinal = 1;  ///< of the passes that fit, from 1
    int rank = 0;
    std::string tag = {};         ///< only passes with this tag; empty: any
    std::uint64_t bytes_min = 0;  ///< only passes of at least so many bytes
    FaultAction action = FaultAction::fail;
    bool for_good = false;  ///< every later pass that fits, too
    std::chrono::milliseconds delay{0};
    std::uint64_t bit = 0;  ///< of flip: which one, modulo the bits of the copy
    std::uint64_t times = 4;  ///< of slow, at least 2
    /// Of late: calls that still succeed before one reports. A call that waits always reports.
    std::uint64_t silent_calls = std::numeric_limits<std::uint64_t>::max();
    friend bool operator==(const Fault&, const Fault&) = default;
};

using FaultPlan = std::vector<Fault>;

/// How often a rank passed a point.
struct FaultCount {
    std::string seam;
    std::string operation;
    int rank = 0;
    std::uint64_t passes = 0;
    friend bool operator==(const FaultCount&, const FaultCount&) = default;
};

/// An exception of nobody's hierarchy.
class InjectedException : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

/// Counts the passes of one rank and says which of them fail. Threads: that rank's.
class FaultInjector {
  public:
    explicit FaultInjector(int rank) noexcept : rank_(rank) {}

    /// Counts anew from here on, for the faults of this rank. Throws ArgumentError for an action
    /// that its operation cannot have, and for ordinal 0.
    void arm(const FaultPlan& plan);
    /// Nothing is counted and nothing fails any more. Whether all faults of this rank happened.
    bool disarm() noexcept;

    /// Counts a pass. The fault that strikes it; nullptr: none, or a delay that is over. Throws
    /// what `foreign` throws; does not return when the rank is killed or stopped.
    [[nodiscard]] const Fault* pass(const FaultPoint& point);

    /// Since the last arm(), passes that the first fault of the plan for this rank fits.
    [[nodiscard]] std::uint64_t fitting_passes() const noexcept {
        return armed_.empty() ? 0 : armed_.front().passes;
    }
    /// Since the last arm(), in the order of first passes.
    [[nodiscard]] const std::vector<FaultCount>& counts() const noexcept { return counts_; }

  private:
    struct Armed {
        Fault fault;
        std::uint64_t passes = 0;
    };
    void count(const FaultPoint& point);

    int rank_;
    bool is_armed_ = false;
    std::vector<Armed> armed_;
    std::vector<FaultCount> counts_;
};

/// A device that hands everything on to `inner` but what `injector` breaks. Seam "device";
/// operations allocate, allocate_pinned, create_stream, create_event, copy, copy_pageable, fill,
/// launch, call_host, record, wait, synchronize, query. Streams and events are the inner device's
/// own, so giving back never fails. `inner` and `injector` must outlive it. A flip of a download
/// changes its source and changes it back, in the order of its stream.
[[nodiscard]] std::unique_ptr<Device> make_faulty_device(Device& inner, FaultInjector& injector);

/// One run of the program under test. It arms injectors with the plan around the operation that it
/// is about, judges how that ended, and returns the counts of all ranks.
using FaultTrial = std::function<std::vector<FaultCount>(const FaultPlan&)>;

/// Runs `trial` without a fault, then with each pass counted there failing: once, for good, and
/// late where that is possible. Returns how many faults there were.
std::size_t for_each_fault(const FaultTrial& trial);

}  // namespace swaplab::sim
