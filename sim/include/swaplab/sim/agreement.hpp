#pragma once

/// Ranks ending a piece of work together: all succeed, or all throw.

#include <functional>
#include <string_view>

#include "swaplab/sim/communicator.hpp"

namespace swaplab::sim {

/// Collective. Runs `work` on every rank, then lets all ranks know how it ended. Returns on all of
/// them when it returned on all; otherwise throws on all: the lowest rank that failed rethrows what
/// it threw, every other rank throws an error of the same ErrorKind with the same fields whose text
/// begins with "rank N, OPERATION: ". What is not an Error becomes a std::runtime_error there.
///
/// `work` must not call collectives: a rank that throws early would leave others waiting in them.
/// `operation` names the work for people ("load: read parameters").
void agree(Communicator& communicator, std::string_view operation,
           const std::function<void()>& work, CallSite site = CallSite::here());

}  // namespace swaplab::sim
