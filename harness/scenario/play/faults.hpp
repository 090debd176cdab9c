#pragma once

/// Faults of a step, and the storage of one rank that they break.

#include "scenario/language/model.hpp"

#include "swaplab/harness/storage.hpp"
#include "swaplab/sim/fault_plan.hpp"

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace swaplab::harness::scenario {

/// The seam whose operations are the phases of the train engine.
inline constexpr std::string_view phase_seam = "phase";

inline constexpr std::string_view collective_seam = "collective";

/// What a step says, by the names of seams and operations.
[[nodiscard]] sim::Fault fault_of(const FaultSpec& spec);

/// A storage that fails as planned and logs what its rank does. The inner storage and the
/// injector must
/// outlive it and the files that it opened.
class RankStorage : public Storage {
  public:
    RankStorage(Storage& inner, sim::FaultInjector& faults, int rank);

    [[nodiscard]] std::vector<StorageOperation>& log() noexcept { return log_; }

    [[nodiscard]] std::unique_ptr<ReadableFile> open(const std::string& path) override;
    [[nodiscard]] std::unique_ptr<WritableFile> create(const std::string& path) override;
    [[nodiscard]] bool exists(const std::string& path) override;
    [[nodiscard]] std::vector<DirectoryEntry> list(const std::string& path) override;
    void make_directory(const std::string& path) override;
    void remove(const std::string& path) override;
    void rename(const std::string& from, const std::string& to) override;
    void exchange(const std::string& a, const std::string& b) override;
    void sync_directory(const std::string& path) override;

    /// How the fault that is armed shows at this seam. Kept until the next call.
    void expect_fault(std::string file, std::string disk_error);

    /// Counts one pass of `point`, fails it if that is planned, else logs it.
    void pass(std::string_view point, StorageOperation operation);
    /// Counts one pass of fsync like pass(); false when it lies, so that nothing is to be synced.
    [[nodiscard]] bool syncs(StorageOperation operation);
    /// Counts one pass of `point`: whether it has to fail.
    [[nodiscard]] bool strikes(std::string_view point, const StorageOperation& operation);
    /// Of the operation's bytes, how many get through before it fails.
    [[nodiscard]] std::size_t bytes_before_failure(const StorageOperation& operation) const;
    [[noreturn]] void fail(std::string_view point, const StorageOperation& operation) const;
    void succeed(StorageOperation operation) { log_.push_back(std::move(operation)); }

  private:
    Storage& inner_;
    sim::FaultInjector& faults_;
    int rank_;
    std::string file_;        ///< glob
    std::string disk_error_;  ///< eio, enospc, short or none
    std::vector<StorageOperation> log_;
};

}  // namespace swaplab::harness::scenario
