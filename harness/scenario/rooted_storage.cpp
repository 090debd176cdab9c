#include "scenario/rooted_storage.hpp"

#include "swaplab/sim/error.hpp"

#include <cstdlib>
#include <filesystem>
#include <utility>

namespace swaplab::harness::scenario {
namespace {

class InMemory : public RunStorage {
  public:
    Storage& storage() noexcept override { return *storage_; }

  private:
    std::unique_ptr<MemoryStorage> storage_ = make_memory_storage();
};

/// Another storage below a directory.
class RootedStorage : public Storage {
  public:
    explicit RootedStorage(std::string root)
        : root_(std::move(root)), inner_(make_posix_storage()) {}

    std::unique_ptr<ReadableFile> open(const std::string& path) override {
        return inner_->open(below(path));
    }
    std::unique_ptr<WritableFile> create(const std::string& path) override {
        return inner_->create(below(path));
    }
    bool exists(const std::string& path) override { return inner_->exists(below(path)); }
    std::vector<DirectoryEntry> list(const std::string& path) override {
        return inner_->list(below(path));
    }
    void make_directory(const std::string& path) override { inner_->make_directory(below(path)); }
    void remove(const std::string& path) override { inner_->remove(below(path)); }
    void rename(const std::string& from, const std::string& to) override {
        inner_->rename(below(from), below(to));
    }
    void exchange(const std::string& a, const std::string& b) override {
        inner_->exchange(below(a), below(b));
    }
    void sync_directory(const std::string& path) override { inner_->sync_directory(below(path)); }

  private:
    [[nodiscard]] std::string below(const std::string& path) const {
        return path.empty() || path == "." ? root_ : root_ + "/" + path;
    }

    std::string root_;
    std::unique_ptr<Storage> inner_;
};

std::string make_temporary_directory() {
    std::string name = (std::filesystem::temp_directory_path() / "swaplab-run-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) {
        throw StorageError(
            "cannot make a temporary directory " + name + "; set TMPDIR to one that can be written",
            {{"operation", "mkdir"}, {"file", name}});
    }
    return name;
}

class OnDisk : public RunStorage {
  public:
    OnDisk() : root_(make_temporary_directory()), storage_(root_) {}
    ~OnDisk() override {
        std::error_code ignored;
        std::filesystem::remove_all(root_, ignored);
    }
    Storage& storage() noexcept override { return storage_; }

  private:
    std::string root_;
    RootedStorage storage_;
};

}  // namespace

std::unique_ptr<RunStorage> make_run_storage(bool posix) {
    if (posix) {
        return std::make_unique<OnDisk>();
    }
    return std::make_unique<InMemory>();
}

}  // namespace swaplab::harness::scenario
