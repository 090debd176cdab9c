#pragma once

/// Faults of a step: wrappers around the device and the storage of one rank, and the phases of the
/// train engine, that break the nth pass of a point.

#include "scenario/model.hpp"

#include "swaplab/harness/storage.hpp"
#include "swaplab/sim/device.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <vector>

namespace swaplab::harness::scenario {

/// What `then = "throw"` throws: an exception of nobody's hierarchy.
class ForeignException : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

/// The fault of the step that runs now, on one rank.
class FaultPlan {
  public:
    void arm(const FaultSpec& fault);
    /// Returns whether the fault happened.
    bool disarm() noexcept;

    /// Called at every pass of `point`. At the nth pass of the armed one throws, through `fail`
    /// (which throws the seam's own error) or as a ForeignException.
    void pass(std::string_view point, const std::function<void()>& fail);

  private:
    std::optional<FaultSpec> armed_;
    std::int64_t passes_ = 0;
    bool happened_ = false;
};

/// A device that fails as planned. Streams and events are the inner device's own.
[[nodiscard]] std::unique_ptr<sim::Device> make_faulty_device(sim::Device& inner, FaultPlan& plan);

/// A storage that fails as planned and logs what its rank does. The inner storage and the plan must
/// outlive it and the files that it opened.
class RankStorage : public Storage {
  public:
    RankStorage(Storage& inner, FaultPlan& plan, int rank);

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

    /// Counts one pass of `point` on `path`, then logs it.
    void pass(std::string_view point, StorageOperation operation);

  private:
    Storage& inner_;
    FaultPlan& plan_;
    int rank_;
    std::vector<StorageOperation> log_;
};

}  // namespace swaplab::harness::scenario
