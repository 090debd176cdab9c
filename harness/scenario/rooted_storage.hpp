#pragma once

/// Where a run keeps its checkpoints: a file system in memory, or a temporary directory.

#include "swaplab/harness/storage.hpp"

#include <memory>

namespace swaplab::harness::scenario {

/// Owns the storage of one run; paths in it are relative ("ckpt/.metadata"). What is on disk is
/// removed at the end.
class RunStorage {
  public:
    RunStorage() = default;
    RunStorage(const RunStorage&) = delete;
    RunStorage& operator=(const RunStorage&) = delete;
    virtual ~RunStorage() = default;

    [[nodiscard]] virtual Storage& storage() noexcept = 0;
};

[[nodiscard]] std::unique_ptr<RunStorage> make_run_storage(bool posix);

}  // namespace swaplab::harness::scenario
