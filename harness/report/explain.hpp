#pragma once

/// A scenario in sentences: short forms and defaults spelled out. Runs nothing.

#include "scenario/language/scenario_file.hpp"

#include <string>

namespace swaplab::harness::report {

/// `file` must be without errors. Tells the story of its first cell.
[[nodiscard]] std::string explain(const scenario::ScenarioFile& file);

}  // namespace swaplab::harness::report
