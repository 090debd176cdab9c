#include "checkpoint/paths.hpp"
#include "checkpoint/storage_error.hpp"

#include "swaplab/sim/assert.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <set>

namespace swaplab::harness {
namespace {

using FileBytes = std::shared_ptr<std::vector<std::byte>>;
using Log = std::vector<StorageOperation>;

class MemoryReadableFile : public ReadableFile {
  public:
    MemoryReadableFile(std::string path, FileBytes bytes, Log& log)
        : path_(std::move(path)), bytes_(std::move(bytes)), log_(log) {}

    [[nodiscard]] std::uint64_t size() const override { return bytes_->size(); }

    void read(std::uint64_t offset_bytes, std::span<std::byte> out) override {
        log_.push_back({"read", path_, "", offset_bytes, out.size()});
        if (offset_bytes > bytes_->size() || out.size() > bytes_->size() - offset_bytes) {
            throw short_file_error(path_, offset_bytes, out.size(), bytes_->size());
        }
        std::copy_n(bytes_->begin() + static_cast<std::ptrdiff_t>(offset_bytes), out.size(),
                    out.begin());
    }

  private:
    std::string path_;
    FileBytes bytes_;
    Log& log_;
};

class MemoryWritableFile : public WritableFile {
  public:
    MemoryWritableFile(std::string path, FileBytes bytes, Log& log)
        : path_(std::move(path)), bytes_(std::move(bytes)), log_(log) {}

    void append(std::span<const std::byte> bytes) override {
        log_.push_back({"write", path_, "", bytes_->size(), bytes.size()});
        bytes_->insert(bytes_->end(), bytes.begin(), bytes.end());
    }
    void sync() override { log_.push_back({"fsync", path_, "", 0, 0}); }
    void close() override { log_.push_back({"close", path_, "", 0, 0}); }

  private:
    std::string path_;
    FileBytes bytes_;
    Log& log_;
};

class MemoryStorageImpl : public MemoryStorage {
  public:
    std::unique_ptr<ReadableFile> open(const std::string& given) override {
        const std::string path = logged("open", given);
        if (is_directory(path)) {
            throw refused("open", path, "is a directory", "give the path of a file");
        }
        return std::make_unique<MemoryReadableFile>(path, existing(path, "open"), log_);
    }

    std::unique_ptr<WritableFile> create(const std::string& given) override {
        const std::string path = logged("create", given);
        require_directory(parent_of(path), "create");
        if (is_directory(path)) {
            throw refused("create", path, "is a directory", "give the path of a file");
        }
        const auto bytes = std::make_shared<std::vector<std::byte>>();
        files_[path] = bytes;
        return std::make_unique<MemoryWritableFile>(path, bytes, log_);
    }

    bool exists(const std::string& given) override {
        const std::string path = logged("exists", given);
        return is_directory(path) || files_.count(path) != 0;
    }

    std::vector<DirectoryEntry> list(const std::string& given) override {
        const std::string path = logged("list", given);
        require_directory(path, "list");
        std::vector<DirectoryEntry> entries;
        for (const std::string& directory : directories_) {
            if (directory != path && parent_of(directory) == path) {
                entries.push_back({base_name_of(directory), true, 0});
            }
        }
        for (const auto& file : files_) {
            if (parent_of(file.first) == path) {
                entries.push_back({base_name_of(file.first), false, file.second->size()});
            }
        }
        std::sort(entries.begin(), entries.end(),
                  [](const auto& a, const auto& b) { return a.name < b.name; });
        return entries;
    }

    void make_directory(const std::string& given) override {
        std::string path = logged("mkdir", given);
        while (!is_directory(path)) {
            if (files_.count(path) != 0) {
                throw refused("make directory", path, "already exists", "it is a file");
            }
            directories_.insert(path);
            path = parent_of(path);
        }
    }

    void remove(const std::string& given) override {
        const std::string path = logged("remove", given);
        if (files_.erase(path) != 0) {
            return;
        }
        require_directory(path, "remove");
        std::erase_if(files_, [&](const auto& file) { return is_below(file.first, path); });
        std::erase_if(directories_, [&](const std::string& directory) {
            return directory == path || is_below(directory, path);
        });
    }

    void rename(const std::string& given_from, const std::string& given_to) override {
        const std::string from = logged("rename", given_from, given_to);
        const std::string to = normal_path(given_to);
        require_directory(parent_of(to), "rename");
        if (is_directory(to)) {
            throw refused("rename to", to, "already exists", "remove it or choose another name");
        }
        if (is_directory(from)) {
            move_directory(from, to);
            return;
        }
        files_[to] = existing(from, "rename");
        files_.erase(from);
    }

    void exchange(const std::string& given_a, const std::string& given_b) override {
        const std::string a = logged("exchange", given_a, given_b);
        const std::string b = normal_path(given_b);
        const std::string aside = b + "\n";  // no path has a line break
        move_any(a, aside);
        move_any(b, a);
        move_any(aside, b);
    }

    void sync_directory(const std::string& given) override {
        require_directory(logged("fsync_directory", given), "sync directory");
    }

    [[nodiscard]] const std::vector<StorageOperation>& log() const noexcept override {
        return log_;
    }
    void clear_log() noexcept override { log_.clear(); }
    std::vector<std::byte>& file_bytes(const std::string& given) override {
        return *existing(normal_path(given), "open");
    }

  private:
    static bool is_below(const std::string& path, const std::string& directory) {
        return path.size() > directory.size() && path.starts_with(directory) &&
               path[directory.size()] == '/';
    }

    static StorageError refused(std::string_view operation, const std::string& path,
                                std::string_view reason, std::string_view advice) {
        return storage_error(operation, path, reason,
                             fmt::format("cannot {} {}: {}; {}", operation, path, reason, advice));
    }

    [[nodiscard]] bool is_directory(const std::string& path) const {
        return path == "." || path == "/" || directories_.count(path) != 0;
    }

    std::string logged(const char* operation, const std::string& path,
                       const std::string& other = {}) {
        log_.push_back(
            {operation, normal_path(path), other.empty() ? "" : normal_path(other), 0, 0});
        return normal_path(path);
    }

    FileBytes existing(const std::string& path, std::string_view operation) {
        const auto found = files_.find(path);
        if (found == files_.end()) {
            throw missing_error(*this, operation, path);
        }
        return found->second;
    }

    void require_directory(const std::string& path, std::string_view operation) {
        if (files_.count(path) != 0) {
            throw refused(operation, path, "not a directory", "a part of the path is a file");
        }
        if (!is_directory(path)) {
            throw missing_error(*this, operation, path);
        }
    }

    void move_any(const std::string& from, const std::string& to) {
        if (is_directory(from)) {
            move_directory(from, to);
            return;
        }
        files_[to] = existing(from, "exchange");
        files_.erase(from);
    }

    void move_directory(const std::string& from, const std::string& to) {
        std::map<std::string, FileBytes> files;
        for (auto& file : files_) {
            const bool moves = is_below(file.first, from);
            files[moves ? to + file.first.substr(from.size()) : file.first] = file.second;
        }
        std::set<std::string> directories;
        for (const std::string& directory : directories_) {
            const bool moves = directory == from || is_below(directory, from);
            directories.insert(moves ? to + directory.substr(from.size()) : directory);
        }
        files_ = std::move(files);
        directories_ = std::move(directories);
    }

    std::map<std::string, FileBytes> files_;
    std::set<std::string> directories_;
    Log log_;
};

}  // namespace

std::unique_ptr<MemoryStorage> make_memory_storage() {
    return std::make_unique<MemoryStorageImpl>();
}

}  // namespace swaplab::harness
