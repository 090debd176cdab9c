#include "failing_storage.hpp"

namespace swaplab::testing {

using harness::ReadableFile;
using harness::WritableFile;

namespace {

class FailingReader final : public ReadableFile {
  public:
    FailingReader(FailingStorage& storage, std::unique_ptr<ReadableFile> inner, std::string path)
        : storage_(storage), inner_(std::move(inner)), path_(std::move(path)) {}
    [[nodiscard]] std::uint64_t size() const override { return inner_->size(); }
    void read(std::uint64_t offset_bytes, std::span<std::byte> out) override {
        storage_.pass("read", path_);
        inner_->read(offset_bytes, out);
    }

  private:
    FailingStorage& storage_;
    std::unique_ptr<ReadableFile> inner_;
    std::string path_;
};

class FailingWriter final : public WritableFile {
  public:
    FailingWriter(FailingStorage& storage, std::unique_ptr<WritableFile> inner, std::string path)
        : storage_(storage), inner_(std::move(inner)), path_(std::move(path)) {}
    void append(std::span<const std::byte> bytes) override {
        storage_.pass("write", path_);
        inner_->append(bytes);
    }
    void sync() override {
        storage_.pass("fsync", path_);
        inner_->sync();
    }
    void close() override {
        storage_.pass("close", path_);
        inner_->close();
    }

  private:
    FailingStorage& storage_;
    std::unique_ptr<WritableFile> inner_;
    std::string path_;
};

}  // namespace

void FailingStorage::pass(const char* operation, const std::string& path) {
    if (++count_ == fail_at_) {
        throw sim::StorageError(std::string(operation) + " " + path + ": input/output error",
                                {{"operation", operation}, {"file", path}});
    }
}

std::unique_ptr<ReadableFile> FailingStorage::open(const std::string& path) {
    pass("open", path);
    return std::make_unique<FailingReader>(*this, inner_.open(path), path);
}

std::unique_ptr<WritableFile> FailingStorage::create(const std::string& path) {
    pass("create", path);
    return std::make_unique<FailingWriter>(*this, inner_.create(path), path);
}

bool FailingStorage::exists(const std::string& path) {
    pass("exists", path);
    return inner_.exists(path);
}

std::vector<harness::DirectoryEntry> FailingStorage::list(const std::string& path) {
    pass("list", path);
    return inner_.list(path);
}

void FailingStorage::make_directory(const std::string& path) {
    pass("mkdir", path);
    inner_.make_directory(path);
}

void FailingStorage::remove(const std::string& path) {
    pass("remove", path);
    inner_.remove(path);
}

void FailingStorage::rename(const std::string& from, const std::string& to) {
    pass("rename", from);
    inner_.rename(from, to);
}

void FailingStorage::exchange(const std::string& a, const std::string& b) {
    pass("exchange", a);
    inner_.exchange(a, b);
}

void FailingStorage::sync_directory(const std::string& path) {
    pass("fsync_directory", path);
    inner_.sync_directory(path);
}

}  // namespace swaplab::testing
