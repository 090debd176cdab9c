#pragma once

/// A storage that hands everything on, for those that change a part of it.

#include "swaplab/harness/storage.hpp"

#include <memory>
#include <string>
#include <vector>

namespace swaplab::harness::scenario {

/// `inner` must outlive it.
class StorageLayer : public Storage {
  public:
    explicit StorageLayer(Storage& inner) noexcept : inner_(inner) {}

    std::unique_ptr<ReadableFile> open(const std::string& path) override {
        return inner_.open(path);
    }
    std::unique_ptr<WritableFile> create(const std::string& path) override {
        return inner_.create(path);
    }
    bool exists(const std::string& path) override { return inner_.exists(path); }
    std::vector<DirectoryEntry> list(const std::string& path) override { return inner_.list(path); }
    void make_directory(const std::string& path) override { inner_.make_directory(path); }
    void remove(const std::string& path) override { inner_.remove(path); }
    void rename(const std::string& from, const std::string& to) override {
        inner_.rename(from, to);
    }
    void exchange(const std::string& a, const std::string& b) override { inner_.exchange(a, b); }
    void sync_directory(const std::string& path) override { inner_.sync_directory(path); }

  protected:
    [[nodiscard]] Storage& inner() const noexcept { return inner_; }

  private:
    Storage& inner_;
};

}  // namespace swaplab::harness::scenario
