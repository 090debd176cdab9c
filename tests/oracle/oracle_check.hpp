#pragma once

/// Compares oracle files with this project, whatever kind they are.

#include "tally.hpp"

#include "swaplab/harness/storage.hpp"

#include <string>
#include <vector>

namespace swaplab::oracle {

/// One tally per oracle file found at `path`: a JSON file, a checkpoint directory with its expected
/// file (DIR/../expected.json beside DIR = "ckpt", or DIR.expected.json), or a directory that holds
/// any number of these. The kind is told from the content, never from the name. A file that breaks
/// its own format or has no row differs. Throws StorageError for a missing path.
[[nodiscard]] std::vector<Tally> check_path(harness::Storage& storage, const std::string& path);

}  // namespace swaplab::oracle
