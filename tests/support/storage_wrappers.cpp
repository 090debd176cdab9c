#include "support/storage_wrappers.hpp"

#include "checkpoint/paths.hpp"
#include "checkpoint/storage_error.hpp"

#include <algorithm>

namespace swaplab::tests {
namespace {

using harness::base_name_of;
using harness::parent_of;
using harness::StorageError;

class FaultyReadable : public harness::ReadableFile {
  public:
    FaultyReadable(std::unique_ptr<harness::ReadableFile> inner, std::string path,
                   const FaultyStorage::Hook& hook)
        : inner_(std::move(inner)), path_(std::move(path)), hook_(hook) {}

    [[nodiscard]] std::uint64_t size() const override { return inner_->size(); }
    void read(std::uint64_t offset_bytes, std::span<std::byte> out) override {
        hook_("read", path_);
        inner_->read(offset_bytes, out);
    }

  private:
    std::unique_ptr<harness::ReadableFile> inner_;
    std::string path_;
    const FaultyStorage::Hook& hook_;
};

class FaultyWritable : public harness::WritableFile {
  public:
    FaultyWritable(std::unique_ptr<harness::WritableFile> inner, std::string path,
                   const FaultyStorage::Hook& hook)
        : inner_(std::move(inner)), path_(std::move(path)), hook_(hook) {}

    void append(std::span<const std::byte> bytes) override {
        hook_("write", path_);
        inner_->append(bytes);
    }
    void sync() override {
        hook_("fsync", path_);
        inner_->sync();
    }
    void close() override {
        hook_("close", path_);
        inner_->close();
    }

  private:
    std::unique_ptr<harness::WritableFile> inner_;
    std::string path_;
    const FaultyStorage::Hook& hook_;
};

StorageError missing(const std::string& path) {
    return harness::storage_error("open", path, "does not exist", path + " does not exist");
}

}  // namespace

std::unique_ptr<harness::ReadableFile> FaultyStorage::open(const std::string& path) {
    hook_("open", path);
    return std::make_unique<FaultyReadable>(inner_.open(path), path, hook_);
}

std::unique_ptr<harness::WritableFile> FaultyStorage::create(const std::string& path) {
    hook_("create", path);
    return std::make_unique<FaultyWritable>(inner_.create(path), path, hook_);
}

bool FaultyStorage::exists(const std::string& path) {
    hook_("exists", path);
    return inner_.exists(path);
}

std::vector<harness::DirectoryEntry> FaultyStorage::list(const std::string& path) {
    hook_("list", path);
    return inner_.list(path);
}

void FaultyStorage::make_directory(const std::string& path) {
    hook_("mkdir", path);
    inner_.make_directory(path);
}

void FaultyStorage::remove(const std::string& path) {
    hook_("remove", path);
    inner_.remove(path);
}

void FaultyStorage::rename(const std::string& from, const std::string& to) {
    hook_("rename", from);
    inner_.rename(from, to);
}

void FaultyStorage::exchange(const std::string& a, const std::string& b) {
    hook_("exchange", a);
    inner_.exchange(a, b);
}

void FaultyStorage::sync_directory(const std::string& path) {
    hook_("fsync_directory", path);
    inner_.sync_directory(path);
}

FailingStorage::FailingStorage(harness::Storage& inner)
    : FaultyStorage(inner, [this](const std::string& operation, const std::string& path) {
          if (++count_ == fail_at_) {
              throw harness::storage_error(
                  operation, path, "the disk failed",
                  "cannot " + operation + " " + path + ": the disk failed");
          }
      }) {}

class CrashStorage::File : public harness::ReadableFile, public harness::WritableFile {
  public:
    explicit File(NodePtr node) : node_(std::move(node)) {}

    [[nodiscard]] std::uint64_t size() const override { return node_->bytes.size(); }
    void read(std::uint64_t offset_bytes, std::span<std::byte> out) override {
        std::copy_n(node_->bytes.begin() + static_cast<std::ptrdiff_t>(offset_bytes), out.size(),
                    out.begin());
    }
    void append(std::span<const std::byte> bytes) override {
        node_->bytes.insert(node_->bytes.end(), bytes.begin(), bytes.end());
    }
    void sync() override { node_->bytes_on_disk = node_->bytes; }
    void close() override {}

  private:
    NodePtr node_;
};

CrashStorage::CrashStorage() : root_(std::make_shared<Node>()) {
    root_->is_directory = true;
}

CrashStorage::NodePtr CrashStorage::find(const std::string& path) const {
    if (path == ".") {
        return root_;
    }
    const NodePtr parent = find(parent_of(path));
    if (!parent) {
        return nullptr;
    }
    const auto found = parent->names.find(base_name_of(path));
    return found == parent->names.end() ? nullptr : found->second;
}

CrashStorage::NodePtr CrashStorage::require(const std::string& path) const {
    NodePtr node = find(path);
    if (!node) {
        throw missing(path);
    }
    return node;
}

CrashStorage::Node& CrashStorage::directory_of(const std::string& path) const {
    return *require(parent_of(path));
}

std::unique_ptr<harness::ReadableFile> CrashStorage::open(const std::string& path) {
    return std::make_unique<File>(require(path));
}

std::unique_ptr<harness::WritableFile> CrashStorage::create(const std::string& path) {
    const auto node = std::make_shared<Node>();
    directory_of(path).names[base_name_of(path)] = node;
    return std::make_unique<File>(node);
}

bool CrashStorage::exists(const std::string& path) {
    return find(path) != nullptr;
}

std::vector<harness::DirectoryEntry> CrashStorage::list(const std::string& path) {
    std::vector<harness::DirectoryEntry> entries;
    for (const auto& name : require(path)->names) {
        entries.push_back({name.first, name.second->is_directory, name.second->bytes.size()});
    }
    return entries;
}

void CrashStorage::make_directory(const std::string& path) {
    if (find(path)) {
        return;
    }
    make_directory(parent_of(path));
    const auto node = std::make_shared<Node>();
    node->is_directory = true;
    directory_of(path).names[base_name_of(path)] = node;
}

void CrashStorage::remove(const std::string& path) {
    directory_of(path).names.erase(base_name_of(path));
}

void CrashStorage::rename(const std::string& from, const std::string& to) {
    const NodePtr node = require(from);
    directory_of(from).names.erase(base_name_of(from));
    directory_of(to).names[base_name_of(to)] = node;
}

void CrashStorage::exchange(const std::string& a, const std::string& b) {
    const NodePtr first = require(a);
    const NodePtr second = require(b);
    directory_of(a).names[base_name_of(a)] = second;
    directory_of(b).names[base_name_of(b)] = first;
}

void CrashStorage::sync_directory(const std::string& path) {
    const NodePtr node = require(path);
    node->names_on_disk = node->names;
}

void CrashStorage::copy(const Node& from, const std::string& path, bool late_names,
                        harness::Storage& to) {
    for (const auto& name : late_names ? from.names : from.names_on_disk) {
        const std::string place = harness::join_path(path, name.first);
        if (name.second->is_directory) {
            to.make_directory(place);
            copy(*name.second, place, late_names, to);
        } else {
            to.create(place)->append(name.second->bytes_on_disk);
        }
    }
}

std::unique_ptr<harness::MemoryStorage> CrashStorage::power_loss(bool late_names) const {
    auto disk = harness::make_memory_storage();
    copy(*root_, ".", late_names, *disk);
    return disk;
}

}  // namespace swaplab::tests
