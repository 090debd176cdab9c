#pragma once

/// One scenario file: read, checked, and cut into runs (cases x cells of the matrix).

#include "scenario/language/diagnostic.hpp"
#include "scenario/language/model.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace swaplab::harness::scenario {

/// What the command line changes; each replaces an axis of the matrix.
struct Overrides {
    std::optional<std::int64_t> seed;
    std::optional<std::int64_t> world;                     ///< world.size
    std::optional<std::string> world_kind;                 ///< world.kind
    std::vector<std::pair<std::string, std::string>> set;  ///< path, value as TOML or bare text
};

struct ScenarioFile {
    std::string path;  ///< as given
    std::string id;    ///< "references/stale_groups"
    std::string source;
    Node document;  ///< short forms spelled out
    Diagnostics diagnostics;
    std::vector<Run> runs;  ///< only of a file without errors
    std::size_t cases = 0;
    std::size_t cells = 1;
    std::vector<std::pair<Position, std::string>> unproven;  ///< expectations no case sees fail

    /// A text of [scenario], or empty.
    [[nodiscard]] std::string said(std::string_view key) const;
};

/// Reads and checks `path`. Throws StorageError when it cannot be read; everything wrong with its
/// content is in the diagnostics.
[[nodiscard]] ScenarioFile load_scenario(const std::string& path, const Overrides& overrides = {});

/// The same for content in memory.
[[nodiscard]] ScenarioFile parse_scenario(const std::string& path, std::string source,
                                          const Overrides& overrides = {});

}  // namespace swaplab::harness::scenario
