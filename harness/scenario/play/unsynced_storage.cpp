#include "scenario/play/unsynced_storage.hpp"

#include "checkpoint/paths.hpp"

#include "swaplab/sim/mutant.hpp"

#include <utility>

namespace swaplab::harness::scenario {
namespace {

const std::string disk = ".disk";

std::string on_disk(const std::string& path) {
    return join_path(disk, normal_path(path));
}

void copy_file(Storage& storage, const std::string& from, const std::string& to) {
    const auto source = storage.open(from);
    std::vector<std::byte> bytes(source->size());
    source->read(0, bytes);
    storage.make_directory(parent_of(to));
    const auto target = storage.create(to);
    target->append(bytes);
    target->close();
}

void copy_tree(Storage& storage, const std::string& from, const std::string& to) {
    storage.make_directory(to);
    for (const DirectoryEntry& entry : storage.list(from)) {
        const std::string source = join_path(from, entry.name);
        if (entry.name == disk) {
            continue;
        }
        if (entry.is_directory) {
            copy_tree(storage, source, join_path(to, entry.name));
        } else {
            copy_file(storage, source, join_path(to, entry.name));
        }
    }
}

class UnsyncedFile : public WritableFile {
  public:
    UnsyncedFile(std::unique_ptr<WritableFile> file, Storage& storage, std::string path)
        : file_(std::move(file)), storage_(storage), path_(std::move(path)) {}

    void append(std::span<const std::byte> bytes) override { file_->append(bytes); }
    void sync() override {
        file_->sync();
        copy_file(storage_, path_, on_disk(path_));
    }
    void close() override { file_->close(); }

  private:
    std::unique_ptr<WritableFile> file_;
    Storage& storage_;
    std::string path_;
};

}  // namespace

UnsyncedStorage::UnsyncedStorage(Storage& inner) : StorageLayer(inner) {
    inner.make_directory(disk);
}

std::unique_ptr<WritableFile> UnsyncedStorage::create(const std::string& path) {
    return std::make_unique<UnsyncedFile>(inner().create(path), inner(), path);
}

std::vector<DirectoryEntry> UnsyncedStorage::list(const std::string& path) {
    auto entries = inner().list(path);
    std::erase_if(entries, [](const DirectoryEntry& entry) { return entry.name == disk; });
    return entries;
}

void UnsyncedStorage::remove(const std::string& path) {
    inner().remove(path);
    pending_.push_back({"remove", {normal_path(path), ""}});
}

void UnsyncedStorage::rename(const std::string& from, const std::string& to) {
    inner().rename(from, to);
    pending_.push_back({"rename", {normal_path(from), normal_path(to)}});
}

void UnsyncedStorage::exchange(const std::string& a, const std::string& b) {
    inner().exchange(a, b);
    pending_.push_back({"exchange", {normal_path(a), normal_path(b)}});
}

/// What never reached the disk cannot change its name there.
void UnsyncedStorage::apply(const Change& change) {
    const std::string a = on_disk(change.paths[0]);
    const std::string b = on_disk(change.paths[1]);
    if (change.what == "exchange" && inner().exists(a) && inner().exists(b)) {
        inner().exchange(a, b);
    } else if (change.what == "remove" && inner().exists(a)) {
        inner().remove(a);
    } else if (change.what == "rename" && inner().exists(a)) {
        if (inner().exists(b)) {
            inner().remove(b);
        }
        inner().rename(a, b);
    }
}

void UnsyncedStorage::sync_directory(const std::string& path) {
    inner().sync_directory(path);
    const std::string directory = normal_path(path);
    std::vector<Change> later;
    for (Change& change : pending_) {
        if (parent_of(change.paths[0]) == directory) {
            apply(change);
        } else {
            later.push_back(std::move(change));
        }
    }
    pending_ = std::move(later);
    for (const DirectoryEntry& entry : list(path)) {
        const std::string there = on_disk(join_path(directory, entry.name));
        if (inner().exists(there)) {
            continue;
        }
        if (entry.is_directory) {
            inner().make_directory(there);
        } else {
            inner().make_directory(parent_of(there));
            inner().create(there)->close();  // a name without bytes
        }
    }
}

void UnsyncedStorage::settle() {
    pending_.clear();
    inner().remove(disk);
    copy_tree(inner(), ".", disk);
}

void UnsyncedStorage::lose_power() {
    pending_.clear();
    if (SWAPLAB_MUTANT("scenario.power_stays")) {
        return;
    }
    for (const DirectoryEntry& entry : list(".")) {
        inner().remove(entry.name);
    }
    copy_tree(inner(), disk, ".");
}

}  // namespace swaplab::harness::scenario
