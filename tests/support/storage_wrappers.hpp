#pragma once

/// Storages that go wrong on purpose.

#include "swaplab/harness/storage.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

namespace swaplab::tests {

/// Hands every operation on to another storage after asking whether it should fail.
class FaultyStorage : public harness::Storage {
  public:
    /// Called before every operation with its name ("create", "write", "fsync", ...) and path; may
    /// throw StorageError.
    using Hook = std::function<void(const std::string& operation, const std::string& path)>;

    FaultyStorage(harness::Storage& inner, Hook hook) : inner_(inner), hook_(std::move(hook)) {}

    std::unique_ptr<harness::ReadableFile> open(const std::string& path) override;
    std::unique_ptr<harness::WritableFile> create(const std::string& path) override;
    bool exists(const std::string& path) override;
    std::vector<harness::DirectoryEntry> list(const std::string& path) override;
    void make_directory(const std::string& path) override;
    void remove(const std::string& path) override;
    void rename(const std::string& from, const std::string& to) override;
    void exchange(const std::string& a, const std::string& b) override;
    void sync_directory(const std::string& path) override;

  private:
    harness::Storage& inner_;
    Hook hook_;
};

/// Counts the operations of all ranks; the one numbered fail_at (from 1) throws StorageError.
class FailingStorage final : public FaultyStorage {
  public:
    explicit FailingStorage(harness::Storage& inner);

    /// Counts anew. 0: no operation fails.
    void fail_at(std::int64_t operation) {
        fail_at_ = operation;
        count_ = 0;
    }
    [[nodiscard]] std::int64_t count() const noexcept { return count_; }

  private:
    std::int64_t fail_at_ = 0;
    std::int64_t count_ = 0;
};

/// A file system that loses what was not synced: file contents reach the disk with fsync, names
/// with fsync of their directory. power_loss() leaves what is on the disk, in either order that the
/// disk is free to choose for names that were changed since the last sync.
class CrashStorage : public harness::Storage {
  public:
    CrashStorage();

    std::unique_ptr<harness::ReadableFile> open(const std::string& path) override;
    std::unique_ptr<harness::WritableFile> create(const std::string& path) override;
    bool exists(const std::string& path) override;
    std::vector<harness::DirectoryEntry> list(const std::string& path) override;
    void make_directory(const std::string& path) override;
    void remove(const std::string& path) override;
    void rename(const std::string& from, const std::string& to) override;
    void exchange(const std::string& a, const std::string& b) override;
    void sync_directory(const std::string& path) override;

    /// What a machine finds after losing power now. `late_names`: changes of names that were not
    /// synced have reached the disk nevertheless (contents have not).
    [[nodiscard]] std::unique_ptr<harness::MemoryStorage> power_loss(bool late_names) const;

  private:
    struct Node;
    using NodePtr = std::shared_ptr<Node>;
    /// A file or directory; names are kept twice, as the system shows them and as the disk has
    /// them.
    struct Node {
        bool is_directory = false;
        std::vector<std::byte> bytes;
        std::vector<std::byte> bytes_on_disk;
        std::map<std::string, NodePtr> names;
        std::map<std::string, NodePtr> names_on_disk;
    };
    class File;

    [[nodiscard]] NodePtr find(const std::string& path) const;
    [[nodiscard]] NodePtr require(const std::string& path) const;
    [[nodiscard]] Node& directory_of(const std::string& path) const;
    static void copy(const Node& from, const std::string& path, bool late_names,
                     harness::Storage& to);

    NodePtr root_;
};

}  // namespace swaplab::tests
