#pragma once

/// What a step threw, as the records keep it.

#include "scenario/play/record.hpp"

#include <exception>
#include <string>
#include <string_view>

namespace swaplab::harness::scenario {

/// The error of `thrown` on `rank` while it did `operation` ("load", "construction"). Exceptions of
/// nobody's hierarchy have no kind; their text is put into words, with what() where it says more
/// than a class name. `thrown` must hold an exception.
[[nodiscard]] StepError step_error(const std::exception_ptr& thrown, int rank,
                                   const std::string& operation);

/// A field "limit" of this value says that the scenario, not the machine, has no more.
constexpr std::string_view scenarios_own_limit = "storage.capacity";

/// Whether the machine ended the step, not the story: no memory, no disk space, or a system call
/// that it refused. Injected faults are the story's.
[[nodiscard]] bool is_machines_refusal(const StepError& error);

}  // namespace swaplab::harness::scenario
