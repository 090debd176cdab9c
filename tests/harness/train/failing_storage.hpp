#pragma once

/// A storage whose n-th operation fails.

#include "swaplab/harness/storage.hpp"

#include <cstdint>
#include <memory>

namespace swaplab::testing {

/// Passes everything on and counts it; the operation number `fail_at` (from 1, over all ranks)
/// throws StorageError instead. 0: none does.
class FailingStorage final : public harness::Storage {
  public:
    explicit FailingStorage(harness::Storage& inner) : inner_(inner) {}

    void fail_at(std::int64_t operation) {
        fail_at_ = operation;
        count_ = 0;
    }
    [[nodiscard]] std::int64_t count() const noexcept { return count_; }
    /// Called before each operation of this storage and its files.
    void pass(const char* operation, const std::string& path);

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
    std::int64_t fail_at_ = 0;
    std::int64_t count_ = 0;
};

}  // namespace swaplab::testing
