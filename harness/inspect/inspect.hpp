#pragma once

/// The commands that look at checkpoints and shards without training: inspect, diff, shard.
///
/// Each writes its whole result to `out` and says by its ExitCode what it found. Errors:
/// StorageError for missing or unreadable files (exit 4), ArgumentError for text that cannot be
/// read as what it should be (exit 2). Nothing is changed on disk. Threads: one per storage.

#include "inspect/look.hpp"

#include "swaplab/harness/exit_code.hpp"
#include "swaplab/harness/storage.hpp"

#include <optional>
#include <ostream>
#include <string>

namespace swaplab::harness {

struct InspectOptions {
    std::string directory;
    /// Where parameter shapes come from when the directory does not hold them: another DCP
    /// directory, or a JSON file {"fqn": [dims]}.
    std::optional<std::string> against;
    bool json = false;
    bool digest = false;  ///< SHA-256 of each tensor's assembled little-endian bytes: reads payload
    Look look;
};

/// Is anything lost or broken in a DCP directory? Reads .metadata, file sizes, item headers, steps
/// and group values; payload only with digest. ok: nothing found. failed: a finding. nothing: what
/// would decide is not in the directory ("cannot tell"), and no finding.
[[nodiscard]] ExitCode inspect_command(Storage& storage, const InspectOptions& options,
                                       std::ostream& out);

struct DiffOptions {
    std::string a;
    std::string b;
    bool json = false;
    Look look;
};

/// First differing element of every tensor, differing values, keys of one side only. ok: equal.
/// failed: different.
[[nodiscard]] ExitCode diff_command(Storage& storage, const DiffOptions& options,
                                    std::ostream& out);

struct ShardOptions {
    std::string shape;       ///< "5,3"; empty for a 0-dim tensor
    std::string mesh;        ///< "2x2"
    std::string placements;  ///< "S0,S0", one per mesh axis
    bool json = false;
};

/// Which part of a tensor each rank holds. Throws ArgumentError also where PyTorch refuses the
/// placements.
[[nodiscard]] ExitCode shard_command(const ShardOptions& options, std::ostream& out);

}  // namespace swaplab::harness
