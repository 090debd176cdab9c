#pragma once

/// What a disk holds when power is lost.

#include "scenario/play/storage_layer.hpp"

#include <array>
#include <string>
#include <vector>

namespace swaplab::harness::scenario {

/// A storage whose power can be lost. The bytes of a file reach the disk, and with them its name,
/// when the file is synced; other changes of names when the directory is that they are in. Nothing
/// reaches it sooner. The disk is a directory of `inner` that is not shown, so that ranks need
/// share nothing but files. Names are changed by one rank of a process.
class UnsyncedStorage : public StorageLayer {
  public:
    explicit UnsyncedStorage(Storage& inner);

    [[nodiscard]] std::unique_ptr<WritableFile> create(const std::string& path) override;
    [[nodiscard]] std::vector<DirectoryEntry> list(const std::string& path) override;
    void remove(const std::string& path) override;
    void rename(const std::string& from, const std::string& to) override;
    void exchange(const std::string& a, const std::string& b) override;
    void sync_directory(const std::string& path) override;

    /// Everything reaches the disk, as it does in time.
    void settle();
    /// What has not reached the disk is gone.
    void lose_power();

  private:
    /// remove: one path. rename, exchange: two.
    struct Change {
        std::string what;
        std::array<std::string, 2> paths;
    };
    void apply(const Change& change);

    std::vector<Change> pending_;  ///< in order
};

}  // namespace swaplab::harness::scenario
