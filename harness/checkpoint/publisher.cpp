#include "checkpoint/publisher.hpp"

#include "checkpoint/paths.hpp"
#include "checkpoint/storage_error.hpp"

#include "swaplab/sim/mutant.hpp"

#include <fmt/format.h>

namespace swaplab::harness {
namespace {

bool belongs_to_a_checkpoint(const DirectoryEntry& entry) {
    return !entry.is_directory &&
           (entry.name.ends_with(".distcp") || entry.name.ends_with(".metadata") ||
            entry.name.ends_with(".metadata.tmp"));
}

/// Directories on the way to `path` that do not exist yet, innermost first.
std::vector<std::string> missing_directories(Storage& storage, std::string path) {
    std::vector<std::string> missing;
    while (!storage.exists(path)) {
        missing.push_back(path);
        path = parent_of(path);
    }
    return missing;
}

}  // namespace

Publisher::Publisher(Storage& storage, std::string_view directory)
    : incomplete_(normal_path(directory) + ".incomplete"),
      storage_(storage),
      directory_(normal_path(directory)) {}

void Publisher::require_replaceable() {
    for (const DirectoryEntry& entry : storage_.list(directory_)) {
        if (!belongs_to_a_checkpoint(entry) && !SWAPLAB_MUTANT("save.replace_anything")) {
            throw storage_error("replace", directory_, "holds other things",
                                fmt::format("{} is not replaced: it holds {}, which is no part of "
                                            "a checkpoint; save under another name",
                                            directory_, entry.name));
        }
    }
}

void Publisher::prepare(int rank) {
    if (rank != 0) {
        return;
    }
    replaces_ = storage_.exists(directory_);
    if (replaces_) {
        require_replaceable();
    }
    if (storage_.exists(incomplete_) && !SWAPLAB_MUTANT("save.keep_leftovers")) {
        storage_.remove(incomplete_);
    }
    const std::vector<std::string> created = missing_directories(storage_, parent_of(directory_));
    storage_.make_directory(incomplete_);
    for (const std::string& path : created) {
        storage_.sync_directory(parent_of(path));
    }
}

void Publisher::finish(WritableFile& file) {
    if (!SWAPLAB_MUTANT("save.no_file_sync")) {
        file.sync();
    }
    file.close();
}

void Publisher::write_metadata(std::string_view metadata) {
    const std::unique_ptr<WritableFile> file = storage_.create(join_path(incomplete_, ".metadata"));
    file->append(std::as_bytes(std::span(metadata)));
    if (!SWAPLAB_MUTANT("save.no_metadata_sync")) {
        file->sync();
    }
    file->close();
    if (!SWAPLAB_MUTANT("save.no_directory_sync")) {
        storage_.sync_directory(incomplete_);
    }
}

void Publisher::swap_names() {
    if (replaces_) {
        storage_.exchange(incomplete_, directory_);
    } else {
        storage_.rename(incomplete_, directory_);
    }
}

void Publisher::publish(std::string_view metadata) {
    if (SWAPLAB_MUTANT("save.publish_before_sync")) {
        swap_names();
        std::swap(incomplete_, directory_);
        write_metadata(metadata);
        std::swap(incomplete_, directory_);
        return;
    }
    write_metadata(metadata);
    swap_names();
    try {
        if (!SWAPLAB_MUTANT("save.no_parent_sync")) {
            storage_.sync_directory(parent_of(directory_));
        }
    } catch (...) {
        // Reported as failed, so the old name must hold the old checkpoint.
        if (replaces_) {
            storage_.exchange(incomplete_, directory_);
        } else {
            storage_.rename(directory_, incomplete_);
        }
        throw;
    }
    if (replaces_) {
        try {
            storage_.remove(incomplete_);
        } catch (const StorageError&) {
            // The new checkpoint is in place and safe; the next save of this name removes the rest.
        }
    }
}

}  // namespace swaplab::harness
