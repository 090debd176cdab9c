#include "checkpoint/paths.hpp"
#include "checkpoint/storage_error.hpp"

#include "swaplab/sim/units.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <dirent.h>
#include <fcntl.h>
#include <filesystem>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>

namespace swaplab::harness {
namespace {

struct Reason {
    std::string reason;
    std::string advice;
};

Reason reason_of(int error_number) {
    switch (error_number) {
        case ENOSPC:
            return {"no space left", "free space on that file system and try again"};
        case EDQUOT:
            return {"quota used up", "free space under that quota and try again"};
        case EACCES:
        case EPERM:
            return {"no permission", "allow this user to use it, or choose another place"};
        case EROFS:
            return {"read-only file system", "choose another place"};
        case ENOTDIR:
            return {"not a directory", "a part of the path is a file"};
        case EISDIR:
            return {"is a directory", "give the path of a file"};
        case ENXIO:
            return {"a pipe, socket or device, not a file", "give the path of a file"};
        case EEXIST:
        case ENOTEMPTY:
            return {"already exists", "remove it or choose another name"};
        case EMFILE:
        case ENFILE:
            return {"too many open files", "raise the limit of open files (ulimit -n)"};
        case EIO:
            return {"the disk failed", "check the disk or the network file system"};
        case EFAULT:
            return {"buffer is not host memory", "copy device memory to the host first"};
        case ENAMETOOLONG:
            return {"name too long", "choose a shorter path"};
        case EXDEV:
            return {"on another file system", "keep both names on one file system"};
        case ELOOP:
            return {"too many symbolic links", "give the real path"};
        default:
            return {std::generic_category().message(error_number), "see the reason"};
    }
}

[[noreturn]] void fail(Storage& storage, std::string_view operation, const std::string& path,
                       int error_number) {
    if (error_number == ENOENT) {
        throw missing_error(storage, operation, path);
    }
    const Reason why = reason_of(error_number);
    throw storage_error(
        operation, path, why.reason,
        fmt::format("cannot {} {}: {}; {}", operation, path, why.reason, why.advice));
}

/// A file descriptor that closes itself; errors of that close have been handled by sync().
class Descriptor {
  public:
    explicit Descriptor(int number) noexcept : number_(number) {}
    Descriptor(const Descriptor&) = delete;
    Descriptor& operator=(const Descriptor&) = delete;
    ~Descriptor() { close(); }

    [[nodiscard]] int number() const noexcept { return number_; }
    int close() noexcept {
        const int result = number_ < 0 ? 0 : ::close(number_);
        number_ = -1;
        return result;
    }

  private:
    int number_;
};

template <class Call>
auto retry(Call call) {
    auto result = call();
    while (result < 0 && errno == EINTR) {
        result = call();
    }
    return result;
}

class PosixReadableFile : public ReadableFile {
  public:
    PosixReadableFile(Storage& storage, std::string path, int descriptor, std::uint64_t size)
        : storage_(storage), path_(std::move(path)), descriptor_(descriptor), size_(size) {}

    [[nodiscard]] std::uint64_t size() const override { return size_; }

    void read(std::uint64_t offset_bytes, std::span<std::byte> out) override {
        std::size_t done = 0;
        while (done < out.size()) {
            const ssize_t count = retry([&] {
                return ::pread(descriptor_.number(), out.data() + done, out.size() - done,
                               static_cast<off_t>(offset_bytes + done));
            });
            if (count < 0) {
                fail(storage_, "read", path_, errno);
            }
            if (count == 0) {
                throw short_file_error(path_, offset_bytes, out.size(), offset_bytes + done);
            }
            done += static_cast<std::size_t>(count);
        }
    }

  private:
    Storage& storage_;
    std::string path_;
    Descriptor descriptor_;
    std::uint64_t size_;
};

class PosixWritableFile : public WritableFile {
  public:
    PosixWritableFile(Storage& storage, std::string path, int descriptor)
        : storage_(storage), path_(std::move(path)), descriptor_(descriptor) {}

    void append(std::span<const std::byte> bytes) override {
        std::size_t done = 0;
        while (done < bytes.size()) {
            const ssize_t count = retry([&] {
                return ::write(descriptor_.number(), bytes.data() + done, bytes.size() - done);
            });
            if (count < 0) {
                fail_append(bytes.size(), errno);
            }
            done += static_cast<std::size_t>(count);
        }
        offset_bytes_ += bytes.size();
    }

    void sync() override {
        if (retry([&] { return ::fsync(descriptor_.number()); }) != 0) {
            fail(storage_, "fsync", path_, errno);
        }
    }

    void close() override {
        if (descriptor_.close() != 0) {
            fail(storage_, "close", path_, errno);
        }
    }

  private:
    [[noreturn]] void fail_append(std::size_t bytes, int error_number) {
        const Reason why = reason_of(error_number);
        throw StorageError(
            fmt::format("cannot write {}, {} at offset {}: {}; {}", path_, sim::format_bytes(bytes),
                        sim::with_thousands(offset_bytes_), why.reason, why.advice),
            {{"operation", "write"},
             {"file", path_},
             {"reason", why.reason},
             {"offset", std::to_string(offset_bytes_)},
             {"bytes", std::to_string(bytes)}});
    }

    Storage& storage_;
    std::string path_;
    Descriptor descriptor_;
    std::uint64_t offset_bytes_ = 0;
};

class PosixStorage : public Storage {
  public:
    std::unique_ptr<ReadableFile> open(const std::string& path) override {
        // O_NONBLOCK: to open a FIFO must not wait for somebody who writes into it.
        const int number =
            retry([&] { return ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK); });
        if (number < 0) {
            fail(*this, "open", path, errno);
        }
        struct stat status {};
        const bool known = ::fstat(number, &status) == 0;
        auto file = std::make_unique<PosixReadableFile>(
            *this, path, number, known ? static_cast<std::uint64_t>(status.st_size) : 0);
        if (!known) {
            fail(*this, "open", path, errno);
        }
        if (!S_ISREG(status.st_mode)) {
            fail(*this, "open", path, S_ISDIR(status.st_mode) ? EISDIR : ENXIO);
        }
        return file;
    }

    std::unique_ptr<WritableFile> create(const std::string& path) override {
        const int number = retry(
            [&] { return ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666); });
        if (number < 0) {
            fail(*this, "create", path, errno);
        }
        return std::make_unique<PosixWritableFile>(*this, path, number);
    }

    bool exists(const std::string& path) override {
        struct stat status {};
        if (::stat(path.c_str(), &status) == 0) {
            return true;
        }
        if (errno != ENOENT && errno != ENOTDIR) {
            fail(*this, "look at", path, errno);
        }
        return false;
    }

    std::vector<DirectoryEntry> list(const std::string& path) override {
        const std::unique_ptr<DIR, int (*)(DIR*)> directory(::opendir(path.c_str()), ::closedir);
        if (directory == nullptr) {
            fail(*this, "list", path, errno);
        }
        std::vector<DirectoryEntry> entries;
        errno = 0;
        while (const dirent* entry = ::readdir(directory.get())) {
            const std::string name = entry->d_name;
            struct stat status {};
            if (name != "." && name != ".." &&
                ::stat(join_path(path, name).c_str(), &status) == 0) {
                const bool is_directory = S_ISDIR(status.st_mode);
                const bool is_file = S_ISREG(status.st_mode);
                entries.push_back({name, is_directory,
                                   is_file ? static_cast<std::uint64_t>(status.st_size) : 0,
                                   !is_directory && !is_file});
            }
            errno = 0;
        }
        if (errno != 0) {
            fail(*this, "list", path, errno);
        }
        std::sort(entries.begin(), entries.end(),
                  [](const auto& a, const auto& b) { return a.name < b.name; });
        return entries;
    }

    void make_directory(const std::string& path) override {
        const std::string normal = normal_path(path);
        struct stat status {};
        if (::stat(normal.c_str(), &status) == 0 && S_ISDIR(status.st_mode)) {
            return;
        }
        const std::string parent = parent_of(normal);
        if (parent != normal && parent != ".") {
            make_directory(parent);
        }
        if (::mkdir(normal.c_str(), 0777) != 0) {
            const int error_number = errno;
            if (error_number != EEXIST || ::stat(normal.c_str(), &status) != 0 ||
                !S_ISDIR(status.st_mode)) {
                fail(*this, "make directory", path, error_number);
            }
        }
    }

    void remove(const std::string& path) override {
        struct stat status {};
        if (::lstat(path.c_str(), &status) != 0) {
            fail(*this, "remove", path, errno);
        }
        std::error_code error;
        std::filesystem::remove_all(path, error);
        if (error) {
            fail(*this, "remove", path, error.value());
        }
    }

    void rename(const std::string& from, const std::string& to) override {
        struct stat status {};
        if (::stat(to.c_str(), &status) == 0 && S_ISDIR(status.st_mode)) {
            fail(*this, "rename to", to, EEXIST);
        }
        if (::rename(from.c_str(), to.c_str()) != 0) {
            fail(*this, "rename", from, errno);
        }
    }

    void exchange(const std::string& a, const std::string& b) override {
        if (::renameat2(AT_FDCWD, a.c_str(), AT_FDCWD, b.c_str(), RENAME_EXCHANGE) == 0) {
            return;
        }
        if (errno != EINVAL && errno != ENOSYS && errno != ENOTSUP) {
            fail(*this, "exchange", a, errno);
        }
        // File systems without exchange: three renames. A crash in between leaves one of the names
        // missing, both contents whole, the second under a name that says so.
        const std::string aside = b + ".replaced";
        rename(b, aside);
        rename(a, b);
        rename(aside, a);
    }

    void sync_directory(const std::string& path) override {
        const Descriptor directory(
            retry([&] { return ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); }));
        if (directory.number() < 0) {
            fail(*this, "sync directory", path, errno);
        }
        if (retry([&] { return ::fsync(directory.number()); }) != 0) {
            fail(*this, "sync directory", path, errno);
        }
    }
};

}  // namespace

std::unique_ptr<Storage> make_posix_storage() {
    return std::make_unique<PosixStorage>();
}

}  // namespace swaplab::harness
