#pragma once

/// `swaplab replay`: runs of devices made again from their traces.

#include "swaplab/harness/exit_code.hpp"
#include "swaplab/harness/storage.hpp"

#include <iosfwd>
#include <string>
#include <vector>

namespace swaplab::harness {

struct ReplayOptions {
    std::vector<std::string> traces;  ///< files: of the ranks of one host
    std::string profile = "unit";     ///< name, or a file
    std::string shrink = {};          ///< file to write, or empty; needs one trace
    std::string chart = {};           ///< file to write, or empty
    bool json = false;
    bool quiet = false;  ///< the closing line only
};

/// What the devices found, their peaks, virtual times and digests to `out`. failed: there are
/// findings, or a run is not the recorded one. Throws sim::ArgumentError for files that are no
/// traces or profiles and where nothing can be shrunk, StorageError for files that cannot be read
/// or written; then nothing is written, or a file that was whole.
ExitCode replay_command(Storage& storage, const ReplayOptions& options, std::ostream& out);

}  // namespace swaplab::harness
