#include "swaplab/sim/error.hpp"
#include "swaplab/sim/fault_plan.hpp"
#include "swaplab/sim/mutant.hpp"
#include "swaplab/sim/world.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace swaplab::sim {
namespace {

bool can_be_late(std::string_view seam, std::string_view operation) {
    return seam == "device" && (operation == "copy" || operation == "copy_pageable" ||
                                operation == "fill" || operation == "launch");
}

bool is_possible(const Fault& fault) {
    switch (fault.action) {
        case FaultAction::late:
            return can_be_late(fault.seam, fault.operation);
        case FaultAction::slow:
        case FaultAction::flip:
            return fault.seam == "device" &&
                   (fault.operation == "copy" || fault.operation == "copy_pageable");
        case FaultAction::postpone:
            return fault.seam == "device" && fault.operation == "query";
        case FaultAction::fail:
        case FaultAction::foreign:
        case FaultAction::kill:
        case FaultAction::stop:
        case FaultAction::delay:
            return true;
    }
    return false;
}

void check(const Fault& fault) {
    if (fault.ordinal == 0) {
        throw ArgumentError("a fault strikes the 1st pass or a later one, not the 0th",
                            {{"operation", fault.operation}, {"found", "ordinal 0"}});
    }
    if (fault.action == FaultAction::slow && fault.times < 2) {
        throw ArgumentError(
            "a slow copy takes at least 2 times its time",
            {{"operation", fault.operation}, {"found", "times " + std::to_string(fault.times)}});
    }
    if (!is_possible(fault) && !SWAPLAB_MUTANT("faults.action_unchecked")) {
        throw ArgumentError(
            fmt::format(
                "the operation {} of seam {} cannot fail in this way; late is for copies, "
                "fill and launch of a device, flip and slow for its copies, postpone for query",
                fault.operation, fault.seam),
            {{"operation", fault.operation}, {"seam", fault.seam}});
    }
}

bool fits(const Fault& fault, const FaultPoint& point) {
    return fault.seam == point.seam && fault.operation == point.operation &&
           (fault.tag.empty() || fault.tag == point.tag) && point.bytes >= fault.bytes_min;
}

}  // namespace

void FaultInjector::arm(const FaultPlan& plan) {
    std::for_each(plan.begin(), plan.end(), check);
    armed_.clear();
    counts_.clear();
    for (const Fault& fault : plan) {
        if (fault.rank == rank_) {
            armed_.push_back({fault});
        }
    }
    is_armed_ = true;
}

bool FaultInjector::disarm() noexcept {
    is_armed_ = false;
    return std::all_of(armed_.begin(), armed_.end(),
                       [](const Armed& each) { return each.passes >= each.fault.ordinal; });
}

const Fault* FaultInjector::pass(const FaultPoint& point) {
    if (!is_armed_) {
        return nullptr;
    }
    count(point);
    const Fault* strikes = nullptr;
    for (Armed& each : armed_) {
        if (!fits(each.fault, point)) {
            continue;
        }
        ++each.passes;
        const bool due = each.fault.for_good ? each.passes >= each.fault.ordinal
                                             : each.passes == each.fault.ordinal;
        if (due && strikes == nullptr) {
            strikes = &each.fault;
        }
    }
    if (strikes == nullptr) {
        return nullptr;
    }
    switch (strikes->action) {
        case FaultAction::kill:
            kill_rank();
        case FaultAction::stop:
            stop_rank();
        case FaultAction::delay:
            delay_rank(strikes->delay);
            return nullptr;
        case FaultAction::foreign:
            throw InjectedException(fmt::format("an exception thrown at {}", point.operation));
        default:
            return strikes;
    }
}

void FaultInjector::count(const FaultPoint& point) {
    const auto found = std::find_if(counts_.begin(), counts_.end(), [&](const FaultCount& each) {
        return each.seam == point.seam && each.operation == point.operation;
    });
    if (found != counts_.end()) {
        ++found->passes;
        return;
    }
    counts_.push_back({std::string(point.seam), std::string(point.operation), rank_, 1});
}

std::size_t for_each_fault(const FaultTrial& trial) {
    std::size_t faults = 0;
    const auto attempt = [&](const Fault& fault) {
        ++faults;
        (void)trial({fault});
    };
    for (const FaultCount& count : trial({})) {
        for (std::uint64_t ordinal = 1; ordinal <= count.passes; ++ordinal) {
            Fault fault;
            fault.seam = count.seam;
            fault.operation = count.operation;
            fault.ordinal = ordinal;
            fault.rank = count.rank;
            attempt(fault);
            fault.for_good = true;
            attempt(fault);
            if (can_be_late(count.seam, count.operation)) {
                fault.for_good = false;
                fault.action = FaultAction::late;
                attempt(fault);
            }
        }
    }
    return faults;
}

}  // namespace swaplab::sim
