#pragma once

/// The seam between checkpoints and file systems.

#include "swaplab/sim/error.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace swaplab::harness {

using sim::StorageError;

/// A file open for reading. Threads: one.
class ReadableFile {
  public:
    ReadableFile() = default;
    ReadableFile(const ReadableFile&) = delete;
    ReadableFile& operator=(const ReadableFile&) = delete;
    virtual ~ReadableFile() = default;

    [[nodiscard]] virtual std::uint64_t size() const = 0;
    /// Fills `out` from `offset_bytes` on. Throws StorageError when the file ends before that.
    virtual void read(std::uint64_t offset_bytes, std::span<std::byte> out) = 0;
};

/// A file open for appending. Destruction without close() abandons it (what was written may
/// remain).
class WritableFile {
  public:
    WritableFile() = default;
    WritableFile(const WritableFile&) = delete;
    WritableFile& operator=(const WritableFile&) = delete;
    virtual ~WritableFile() = default;

    virtual void append(std::span<const std::byte> bytes) = 0;
    /// fsync: what was appended survives power loss when this returns.
    virtual void sync() = 0;
    virtual void close() = 0;
};

struct DirectoryEntry {
    std::string name;
    bool is_directory = false;
    std::uint64_t bytes = 0;  ///< of a file
    bool is_special = false;  ///< a pipe, socket or device: nothing to read
};

/// Files of one file system. Paths use '/'. Every failure is a StorageError whose fields are
/// operation, file and reason, and whose text says what to do. Buffers handed in must be ordinary
/// host memory (a device pointer would make a system call fail with EFAULT: checked first).
/// Threads: an implementation is used by one thread at a time; ranks in one process share it.
class Storage {
  public:
    Storage() = default;
    Storage(const Storage&) = delete;
    Storage& operator=(const Storage&) = delete;
    virtual ~Storage() = default;

    [[nodiscard]] virtual std::unique_ptr<ReadableFile> open(const std::string& path) = 0;
    /// Creates or truncates.
    [[nodiscard]] virtual std::unique_ptr<WritableFile> create(const std::string& path) = 0;
    [[nodiscard]] virtual bool exists(const std::string& path) = 0;
    /// Sorted by name; throws when `path` is no directory.
    [[nodiscard]] virtual std::vector<DirectoryEntry> list(const std::string& path) = 0;
    /// Parents too; no error when it exists.
    virtual void make_directory(const std::string& path) = 0;
    /// A file, or a directory with everything in it.
    virtual void remove(const std::string& path) = 0;
    /// Atomic. Replaces a file; a directory only when `to` does not exist.
    virtual void rename(const std::string& from, const std::string& to) = 0;
    /// Atomically swaps two existing names.
    virtual void exchange(const std::string& a, const std::string& b) = 0;
    /// fsync of the directory itself: names in it survive power loss when this returns.
    virtual void sync_directory(const std::string& path) = 0;
};

/// The real file system.
[[nodiscard]] std::unique_ptr<Storage> make_posix_storage();

/// One file operation, as it reached a storage.
struct StorageOperation {
    std::string operation;  ///< "open", "read", "create", "write", "fsync", "close", "mkdir",
                            ///< "remove", "rename", "exchange", "fsync_directory", "list", "exists"
    std::string path;
    std::string other_path;          ///< of rename and exchange
    std::uint64_t offset_bytes = 0;  ///< of read and write
    std::uint64_t bytes = 0;
    friend bool operator==(const StorageOperation&, const StorageOperation&) = default;
};

/// A file system in memory that logs what is done to it.
class MemoryStorage : public Storage {
  public:
    [[nodiscard]] virtual const std::vector<StorageOperation>& log() const noexcept = 0;
    virtual void clear_log() noexcept = 0;
    /// Direct changes for damage in tests and scenarios; not logged.
    [[nodiscard]] virtual std::vector<std::byte>& file_bytes(const std::string& path) = 0;
};

[[nodiscard]] std::unique_ptr<MemoryStorage> make_memory_storage();

}  // namespace swaplab::harness
