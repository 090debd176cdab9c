#pragma once

/// Scenario files, the language and errors of commands as JSON.

#include "scenario/language/scenario_file.hpp"

#include "swaplab/harness/exit_code.hpp"
#include "swaplab/sim/error.hpp"

#include <string>
#include <vector>

namespace swaplab::harness::report {

[[nodiscard]] std::string list_json(const std::vector<scenario::ScenarioFile>& files);
[[nodiscard]] std::string lint_json(const std::vector<scenario::ScenarioFile>& files);
/// The sentences of `swaplab explain`; of files without errors.
[[nodiscard]] std::string explain_json(const std::vector<scenario::ScenarioFile>& files);
/// The words of the language whose path begins with `prefix`, and the faults of specimens.
[[nodiscard]] std::string words_json(const std::string& prefix);
[[nodiscard]] std::string defects_json();
/// What a command prints with --json when it cannot do its work: schema swaplab.error/1. `kind` is
/// one of sim::ErrorKind, or empty.
[[nodiscard]] std::string error_json(ExitCode code, const std::string& kind,
                                     const std::string& text, const sim::ErrorFields& fields);

}  // namespace swaplab::harness::report
