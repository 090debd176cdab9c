#pragma once

/// The blocks that findings print, and what they have in common.

#include "inspect/look.hpp"
#include "inspect/report.hpp"

#include <optional>
#include <set>
#include <string>
#include <vector>

namespace swaplab::harness {

using Rows = std::vector<std::vector<std::string>>;
/// Findings of one code.
using Findings = std::vector<const Finding*>;

/// "w [7,2]".
[[nodiscard]] std::string with_shape(const std::string& key, const Shape& shape);
/// "__1_0.distcp at 1,577".
[[nodiscard]] std::string place_of(const std::optional<StoredItem>& item);
/// Header row, at most 8 rows unless Look::all, and how many more there are.
[[nodiscard]] std::string rows_text(Rows rows, std::vector<std::string> header, const Look& look);
/// One line of a block: "  means  ...".
[[nodiscard]] std::string line(const std::string& word, const std::string& text);

/// Elements lost by the findings, and of the tensors that lose them, each counted once.
struct Sums {
    std::int64_t lost = 0;
    std::int64_t elements = 0;
};
[[nodiscard]] Sums sums_of(const Findings& findings);
[[nodiscard]] std::set<std::string> keys_of(const Findings& findings);

[[nodiscard]] std::string lost_shards_text(const InspectReport& report, const Findings& findings,
                                           const Look& look);
/// Missing and truncated files: a block per file.
[[nodiscard]] std::string file_faults_text(const InspectReport& report, const Findings& findings,
                                           const Look& look);
[[nodiscard]] std::string exchanged_chunks_text(const InspectReport& report,
                                                const Findings& findings, const Look& look);

}  // namespace swaplab::harness
