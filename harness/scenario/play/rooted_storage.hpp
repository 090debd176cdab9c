#pragma once

/// Where a run keeps its checkpoints: a file system in memory, or a temporary directory.

#include "swaplab/harness/storage.hpp"

#include <memory>
#include <string>

namespace swaplab::harness::scenario {

/// Owns the storage of one run; paths in it are relative ("ckpt/.metadata"). What is on disk is
/// removed at the end, or after a kill when the next run makes its own.
class RunStorage {
  public:
    RunStorage() = default;
    RunStorage(const RunStorage&) = delete;
    RunStorage& operator=(const RunStorage&) = delete;
    virtual ~RunStorage() = default;

    [[nodiscard]] virtual Storage& storage() noexcept = 0;
    /// A file of this name outside the storage, for what ranks tell when they are processes; only
    /// where the storage is on disk.
    [[nodiscard]] virtual std::string file_beside(const std::string& name) const = 0;
};

/// `posix`: with fsync, as a checkpoint needs it. `on_disk`: where ranks do not share the memory of
/// one thread; without `posix` nothing is made durable.
[[nodiscard]] std::unique_ptr<RunStorage> make_run_storage(bool posix, bool on_disk);

}  // namespace swaplab::harness::scenario
