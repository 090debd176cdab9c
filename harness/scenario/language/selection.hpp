#pragma once

/// Which scenario files and runs the arguments of a command mean.

#include <string>
#include <vector>

namespace swaplab::harness::scenario {

struct Selection {
    std::string file;
    std::string run;  ///< "swap_adamw, world.size=2": what stands in brackets; empty: all runs
    bool operator==(const Selection&) const = default;
};

/// Files as they are; directories: every *.toml below them in order of path, those in data/ apart;
/// run names "family/name[case]": their file, looked for as given, with .toml, and below
/// scenarios/. Throws StorageError when a path does not exist, naming what is there instead, or is
/// neither file nor directory; ArgumentError for text that names nothing.
[[nodiscard]] std::vector<Selection> select_scenarios(const std::vector<std::string>& arguments);

}  // namespace swaplab::harness::scenario
