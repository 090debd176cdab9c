#pragma once

/// Traces of devices as files: their names, their content, their runs made again.

#include "swaplab/harness/storage.hpp"
#include "swaplab/sim/device_trace.hpp"

#include <string>

namespace swaplab::harness {

/// The trace in the file at `path`. Throws StorageError when that cannot be read, and
/// sim::ArgumentError with fields file and reason for what is no trace.
[[nodiscard]] sim::DeviceTrace read_trace(Storage& storage, const std::string& path);

/// Throws sim::DeviceError unless this machine has the memory that `trace` holds at once.
void require_memory(const sim::DeviceTrace& trace);

/// The beginning of the names of all files of the run with this name: letters, digits, '-', '_' and
/// '.', at most 120 of them, and a digest of the whole name, so that no two runs share files.
[[nodiscard]] std::string file_stem(const std::string& run_name);

}  // namespace swaplab::harness
