#pragma once

/// What inspect and diff print for people.

#include "inspect/look.hpp"
#include "inspect/report.hpp"

#include <string>

namespace swaplab::harness {

/// "12 of 24 elements (50.0 %)"; `noun` may be empty.
[[nodiscard]] std::string share(std::int64_t part, std::int64_t whole, const std::string& noun);

/// Rows shown of each finding without --all.
constexpr std::size_t rows_shown = 8;

/// The whole report. Look::all: lists of all keys and files, too.
[[nodiscard]] std::string to_text(const InspectReport& report, const Look& look);

/// The blocks of all findings, each ending in what to do.
[[nodiscard]] std::string findings_text(const InspectReport& report, const Look& look);

}  // namespace swaplab::harness
