/// One set of claims for both storages, then what is special about each.

#include "swaplab/harness/storage.hpp"

#include "support/temporary_directory.hpp"

#include <gtest/gtest.h>

#include <sys/mman.h>
#include <sys/stat.h>

namespace swaplab::tests {
namespace {

using harness::Storage;
using harness::StorageError;

std::span<const std::byte> bytes_of(std::string_view text) {
    return std::as_bytes(std::span(text));
}

void write(Storage& storage, const std::string& path, std::string_view text) {
    const auto file = storage.create(path);
    file->append(bytes_of(text));
    file->sync();
    file->close();
}

std::string read(Storage& storage, const std::string& path) {
    const auto file = storage.open(path);
    std::string text(file->size(), '\0');
    file->read(0, std::as_writable_bytes(std::span(text)));
    return text;
}

/// What `work` throws; fails when it throws nothing.
template <class Work>
StorageError error_of(Work work) {
    try {
        work();
    } catch (const StorageError& error) {
        return error;
    }
    ADD_FAILURE() << "nothing was thrown";
    return StorageError("");
}

sim::ErrorField reason(const std::string& text) {
    return {"reason", text};
}

class EveryStorage : public testing::TestWithParam<bool> {
  protected:
    EveryStorage()
        : storage_(GetParam() ? harness::make_posix_storage() : harness::make_memory_storage()),
          base_(GetParam() ? directory_.path() : "base") {
        storage_->make_directory(base_);
    }

    [[nodiscard]] std::string at(const std::string& name) const { return base_ + "/" + name; }

    TemporaryDirectory directory_;
    std::unique_ptr<Storage> storage_;
    std::string base_;
};

INSTANTIATE_TEST_SUITE_P(Both, EveryStorage, testing::Values(true, false),
                         [](const auto& chosen) { return chosen.param ? "Posix" : "Memory"; });

TEST_P(EveryStorage, ReadsWhatWasAppended) {
    const auto file = storage_->create(at("a"));
    file->append(bytes_of("one"));
    file->append(bytes_of(""));
    file->append(bytes_of("two"));
    file->close();
    EXPECT_EQ(read(*storage_, at("a")), "onetwo");
    std::string part(3, '\0');
    storage_->open(at("a"))->read(2, std::as_writable_bytes(std::span(part)));
    EXPECT_EQ(part, "etw");
}

TEST_P(EveryStorage, CreateTruncates) {
    write(*storage_, at("a"), "long text");
    write(*storage_, at("a"), "x");
    EXPECT_EQ(read(*storage_, at("a")), "x");
}

TEST_P(EveryStorage, AReadBeyondTheEndNamesFileAndSizes) {
    write(*storage_, at("a"), "four");
    const auto file = storage_->open(at("a"));
    std::string part(3, '\0');
    const StorageError error =
        error_of([&] { file->read(2, std::as_writable_bytes(std::span(part))); });
    EXPECT_THAT(error.fields(), testing::Contains(reason("ends early")));
    EXPECT_THAT(error.what(), testing::HasSubstr("ends at 4 B"));
}

TEST_P(EveryStorage, AMissingPathNamesItsNeighbours) {
    for (const char* name : {"step-100", "step-200", "step-30"}) {
        storage_->make_directory(at(name));
    }
    const std::string expected =
        at("step-300") + " does not exist; " + base_ + "/ holds step-100, step-200, step-30";
    EXPECT_EQ(error_of([&] { storage_->list(at("step-300")); }).what(), expected);
    EXPECT_EQ(error_of([&] { storage_->open(at("step-300")); }).what(), expected);
    EXPECT_THAT(error_of([&] { storage_->open(at("x/y/z/.metadata")); }).what(),
                testing::HasSubstr(base_ + "/ holds step-100"));
    EXPECT_THAT(error_of([&] { storage_->remove(at("gone")); }).fields(),
                testing::Contains(reason("does not exist")));
}

TEST_P(EveryStorage, AnEmptyDirectoryIsSaidToBeEmpty) {
    storage_->make_directory(at("runs"));
    EXPECT_EQ(error_of([&] { storage_->open(at("runs/a")); }).what(),
              at("runs/a") + " does not exist; " + at("runs") + "/ is empty");
}

TEST_P(EveryStorage, ListsByNameWithKindsAndSizes) {
    write(*storage_, at("b"), "12345");
    write(*storage_, at(".a"), "");
    storage_->make_directory(at("c/d"));
    const auto entries = storage_->list(base_);
    ASSERT_EQ(entries.size(), 3U);
    EXPECT_EQ(entries[0].name, ".a");
    EXPECT_EQ(entries[1].name, "b");
    EXPECT_EQ(entries[1].bytes, 5U);
    EXPECT_FALSE(entries[1].is_directory);
    EXPECT_EQ(entries[2].name, "c");
    EXPECT_TRUE(entries[2].is_directory);
}

TEST_P(EveryStorage, FilesAndDirectoriesAreToldApart) {
    write(*storage_, at("file"), "x");
    EXPECT_THAT(error_of([&] { storage_->open(base_); }).fields(),
                testing::Contains(reason("is a directory")));
    EXPECT_THAT(error_of([&] { storage_->list(at("file")); }).fields(),
                testing::Contains(reason("not a directory")));
    EXPECT_THAT(error_of([&] { storage_->create(at("file/below")); }).fields(),
                testing::Contains(reason("not a directory")));
    EXPECT_THROW(storage_->make_directory(at("file/below")), StorageError);
    EXPECT_THROW(storage_->create(at("nowhere/file")), StorageError);
}

TEST_P(EveryStorage, RemoveTakesADirectoryWithEverythingInIt) {
    storage_->make_directory(at("c/d"));
    write(*storage_, at("c/d/.hidden"), "x");
    storage_->remove(at("c"));
    EXPECT_FALSE(storage_->exists(at("c/d/.hidden")));
    EXPECT_FALSE(storage_->exists(at("c")));
}

TEST_P(EveryStorage, RenameReplacesAFileButNoDirectory) {
    write(*storage_, at("a"), "new");
    write(*storage_, at("b"), "old");
    storage_->rename(at("a"), at("b"));
    EXPECT_EQ(read(*storage_, at("b")), "new");
    EXPECT_FALSE(storage_->exists(at("a")));
    storage_->make_directory(at("c"));
    storage_->make_directory(at("d"));
    write(*storage_, at("c/x"), "x");
    EXPECT_THAT(error_of([&] { storage_->rename(at("c"), at("d")); }).fields(),
                testing::Contains(reason("already exists")));
    storage_->rename(at("c"), at("e"));
    EXPECT_EQ(read(*storage_, at("e/x")), "x");
}

TEST_P(EveryStorage, ExchangeSwapsTwoDirectories) {
    storage_->make_directory(at("c"));
    storage_->make_directory(at("d"));
    write(*storage_, at("c/x"), "from c");
    write(*storage_, at("d/y"), "from d");
    storage_->exchange(at("c"), at("d"));
    EXPECT_EQ(read(*storage_, at("d/x")), "from c");
    EXPECT_EQ(read(*storage_, at("c/y")), "from d");
    EXPECT_EQ(storage_->list(base_).size(), 2U);
    EXPECT_THROW(storage_->exchange(at("c"), at("gone")), StorageError);
}

TEST_P(EveryStorage, SyncOfADirectoryNeedsOne) {
    storage_->sync_directory(base_);
    EXPECT_THROW(storage_->sync_directory(at("gone")), StorageError);
}

TEST_P(EveryStorage, PathsMayBeWrittenInSeveralWays) {
    write(*storage_, base_ + "//./a", "x");
    EXPECT_EQ(read(*storage_, at("a")), "x");
    EXPECT_TRUE(storage_->exists(base_ + "/"));
}

TEST(PosixStorage, AFullDiskIsToldAsSuch) {
    const auto storage = harness::make_posix_storage();
    if (!storage->exists("/dev/full")) {
        GTEST_SKIP() << "no /dev/full here";
    }
    const auto file = storage->create("/dev/full");
    const StorageError error = error_of([&] { file->append(bytes_of("text")); });
    EXPECT_THAT(error.fields(), testing::IsSupersetOf({sim::ErrorField{"operation", "write"},
                                                       {"file", "/dev/full"},
                                                       {"reason", "no space left"},
                                                       {"bytes", "4"}}));
}

TEST(PosixStorage, APipeOrDeviceIsRefusedAtOnceInPlaceOfAFile) {
    const TemporaryDirectory directory;
    const std::string pipe = directory.path() + "/pipe";
    ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
    const auto storage = harness::make_posix_storage();
    for (const std::string& path : {pipe, std::string("/dev/null")}) {
        const StorageError error = error_of([&] { (void)storage->open(path); });
        EXPECT_THAT(error.fields(),
                    testing::Contains(reason("a pipe, socket or device, not a file")));
    }
}

TEST(PosixStorage, ABufferThatIsNotHostMemoryIsRefused) {
    const std::size_t size = 4096;
    void* hidden = ::mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(hidden, MAP_FAILED);
    const TemporaryDirectory directory;
    const auto storage = harness::make_posix_storage();
    const auto file = storage->create(directory.path() + "/a");
    const StorageError error = error_of([&] {
        file->append({static_cast<const std::byte*>(hidden), size});
    });
    EXPECT_THAT(error.fields(), testing::Contains(reason("buffer is not host memory")));
    ::munmap(hidden, size);
}

TEST(MemoryStorage, LogsEveryOperationInOrder) {
    const auto storage = harness::make_memory_storage();
    storage->make_directory("d");
    const auto file = storage->create("d/a");
    file->append(bytes_of("abc"));
    file->append(bytes_of("de"));
    file->sync();
    file->close();
    storage->rename("d/a", "d/b");
    const std::vector<harness::StorageOperation> expected{
        {"mkdir", "d", "", 0, 0},       {"create", "d/a", "", 0, 0}, {"write", "d/a", "", 0, 3},
        {"write", "d/a", "", 3, 2},     {"fsync", "d/a", "", 0, 0},  {"close", "d/a", "", 0, 0},
        {"rename", "d/a", "d/b", 0, 0},
    };
    EXPECT_EQ(storage->log(), expected);
    storage->clear_log();
    EXPECT_TRUE(storage->log().empty());
}

TEST(MemoryStorage, FileBytesAreTheFileItself) {
    const auto storage = harness::make_memory_storage();
    write(*storage, "a", "abc");
    storage->file_bytes("a").resize(1);
    EXPECT_EQ(read(*storage, "a"), "a");
    EXPECT_THROW(storage->file_bytes("b"), StorageError);
}

}  // namespace
}  // namespace swaplab::tests
