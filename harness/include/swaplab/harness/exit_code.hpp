#pragma once

/// What the swaplab command's exit status says.

#include <string>

namespace swaplab::harness {

enum class ExitCode : int {
    ok = 0,            ///< all passed; nothing found; equal
    failed = 1,        ///< a check failed; a finding; different; checkpoint refused
    usage = 2,         ///< bad usage or bad scenario
    nothing = 3,       ///< nothing ran, all skipped; cannot tell
    environment = 4,   ///< missing or unreadable files, no space, no device of the kind asked for
    hang = 5,          ///< a rank hung
};

/// The code of a run in which both `a` and `b` happened: the first of usage, environment, hang,
/// failed, nothing, ok.
[[nodiscard]] ExitCode worse(ExitCode a, ExitCode b) noexcept;

/// The table that `swaplab help exit-codes` prints.
[[nodiscard]] std::string exit_code_help();

}  // namespace swaplab::harness
