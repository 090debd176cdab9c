#pragma once

#include "inspect/findings.hpp"
#include "inspect/report.hpp"

namespace swaplab::harness {

/// Reads and judges the checkpoint in `directory`. A directory with data files and no .metadata, or
/// with a .metadata that cannot be read, is a finding. Throws StorageError when there is no such
/// directory or nothing of a checkpoint in it.
[[nodiscard]] InspectReport inspect_directory(Storage& storage, const std::string& directory,
                                              const KnownShapes* against, bool digest);

/// Shapes of the tensors outside of optimizer state in `directory`.
[[nodiscard]] KnownShapes shapes_of_directory(Storage& storage, const std::string& directory);

}  // namespace swaplab::harness
