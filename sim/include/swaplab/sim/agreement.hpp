#pragma once

/// Ranks ending a piece of work together: all succeed, or all throw.

#include "swaplab/sim/communicator.hpp"

#include <exception>
#include <functional>
#include <string_view>

namespace swaplab::sim {

/// Collective. Runs `work` on every rank, then lets all ranks know how it ended. Returns on all of
/// them when it returned on all; otherwise throws on all the same ErrorKind, that of the lowest
/// rank that failed: a rank whose work threw an error of that kind rethrows it, every other rank
/// throws one with the same fields whose text begins with "rank N, OPERATION: ". What is not an
/// Error becomes a std::runtime_error there.
///
/// `work` must not call collectives: a rank that throws early would leave others waiting in them.
/// `operation` names the work ("SwapAdamW::load of state dict: read moments"). Ranks that bring
/// different ones get CollectiveMismatch, all of them, before an outcome counts: an agreement never
/// pairs one operation with another.
void agree(Communicator& communicator, std::string_view operation,
           const std::function<void()>& work, CallSite site = CallSite::here());

/// Throws an error of the same kind, text and fields as `error` with `note` after the text. Errors
/// whose text is made from their data (OutOfDeviceMemory, refusals) are rethrown as they are.
[[noreturn]] void rethrow_with_note(const std::exception_ptr& error, std::string_view note);

}  // namespace swaplab::sim
