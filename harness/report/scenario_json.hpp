#pragma once

/// Scenario files as JSON: `swaplab list --json`, `swaplab lint --json`.

#include "scenario/scenario_file.hpp"

#include <string>
#include <vector>

namespace swaplab::harness::report {

[[nodiscard]] std::string list_json(const std::vector<scenario::ScenarioFile>& files);
[[nodiscard]] std::string lint_json(const std::vector<scenario::ScenarioFile>& files);

}  // namespace swaplab::harness::report
