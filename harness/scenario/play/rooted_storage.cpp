#include "scenario/play/rooted_storage.hpp"

#include "swaplab/sim/assert.hpp"
#include "swaplab/sim/error.hpp"

#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <string_view>
#include <sys/file.h>
#include <unistd.h>
#include <utility>

namespace swaplab::harness::scenario {
namespace {

class InMemory : public RunStorage {
  public:
    Storage& storage() noexcept override { return *storage_; }
    std::string file_beside(const std::string& /*name*/) const override {
        SWAPLAB_ASSERT(false, "a storage in memory has nothing beside it");
        return "";
    }

  private:
    std::unique_ptr<MemoryStorage> storage_ = make_memory_storage();
};

/// A file that stands for one in memory: nothing survives a power loss anyway.
class UnsyncedFile : public WritableFile {
  public:
    explicit UnsyncedFile(std::unique_ptr<WritableFile> inner) : inner_(std::move(inner)) {}
    void append(std::span<const std::byte> bytes) override { inner_->append(bytes); }
    void sync() override {}
    void close() override { inner_->close(); }

  private:
    std::unique_ptr<WritableFile> inner_;
};

/// The real file system below a directory.
class RootedStorage : public Storage {
  public:
    RootedStorage(std::string root, bool synced)
        : root_(std::move(root)), synced_(synced), inner_(make_posix_storage()) {}

    std::unique_ptr<ReadableFile> open(const std::string& path) override {
        return inner_->open(below(path));
    }
    std::unique_ptr<WritableFile> create(const std::string& path) override {
        auto file = inner_->create(below(path));
        return synced_ ? std::move(file) : std::make_unique<UnsyncedFile>(std::move(file));
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
    bool synced_;
    std::unique_ptr<Storage> inner_;
};

constexpr std::string_view name_prefix = "swaplab-run-";

/// Removes the directories of runs whose process was killed: nobody holds their lock any more.
void sweep(const std::filesystem::path& parent) {
    std::error_code ignored;
    for (const auto& entry : std::filesystem::directory_iterator(parent, ignored)) {
        const std::string lock = entry.path().string() + "/lock";
        if (!entry.path().filename().string().starts_with(name_prefix)) {
            continue;
        }
        const int file = ::open(lock.c_str(), O_RDONLY | O_CLOEXEC);
        if (file >= 0 && ::flock(file, LOCK_EX | LOCK_NB) == 0) {
            std::filesystem::remove_all(entry.path(), ignored);
        }
        ::close(file);
    }
}

/// A directory that goes away with everything in it; at the latest when another is made.
class OwnDirectory {
  public:
    OwnDirectory() {
        std::error_code error;
        const std::filesystem::path parent = std::filesystem::temp_directory_path(error);
        sweep(parent);
        path_ = (parent / (std::string(name_prefix) + "XXXXXX")).string();
        if (error || ::mkdtemp(path_.data()) == nullptr) {
            throw StorageError("cannot make a temporary directory " + path_ +
                                   "; set TMPDIR to one that can be written",
                               {{"operation", "mkdir"}, {"file", path_}});
        }
        // Nobody may see the lock before it is held.
        lock_ = ::open((path_ + "/new").c_str(), O_RDONLY | O_CREAT | O_CLOEXEC, 0600);
        static_cast<void>(::flock(lock_, LOCK_EX | LOCK_NB));
        std::error_code ignored;
        std::filesystem::rename(path_ + "/new", path_ + "/lock", ignored);
    }
    OwnDirectory(const OwnDirectory&) = delete;
    OwnDirectory& operator=(const OwnDirectory&) = delete;
    ~OwnDirectory() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
        ::close(lock_);
    }
    [[nodiscard]] const std::string& path() const noexcept { return path_; }

  private:
    std::string path_;
    int lock_ = -1;
};

class OnDisk : public RunStorage {
  public:
    explicit OnDisk(bool synced) : storage_(directory_.path() + "/files", synced) {
        std::filesystem::create_directory(directory_.path() + "/files");
    }
    Storage& storage() noexcept override { return storage_; }
    std::string file_beside(const std::string& name) const override {
        return directory_.path() + "/" + name;
    }

  private:
    OwnDirectory directory_;
    RootedStorage storage_;
};

}  // namespace

std::unique_ptr<RunStorage> make_run_storage(bool posix, bool on_disk) {
    if (posix || on_disk) {
        return std::make_unique<OnDisk>(posix);
    }
    return std::make_unique<InMemory>();
}

}  // namespace swaplab::harness::scenario
