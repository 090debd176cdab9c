#include "scenario/play/limited_storage.hpp"

#include "scenario/play/step_error.hpp"
#include "scenario/play/storage_layer.hpp"

#include "swaplab/sim/mutant.hpp"
#include "swaplab/sim/units.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

namespace swaplab::harness::scenario {
namespace {

std::uint64_t bytes_below(Storage& storage, const std::string& directory) {
    std::uint64_t sum = 0;
    for (const DirectoryEntry& entry : storage.list(directory)) {
        const std::string path = directory == "." ? entry.name : directory + "/" + entry.name;
        sum += entry.is_directory ? bytes_below(storage, path) : entry.bytes;
    }
    return sum;
}

class LimitedFile : public WritableFile {
  public:
    LimitedFile(std::unique_ptr<WritableFile> file, Storage& disk, std::string path,
                std::uint64_t capacity_bytes)
        : file_(std::move(file)),
          disk_(disk),
          path_(std::move(path)),
          capacity_bytes_(capacity_bytes) {}

    void append(std::span<const std::byte> bytes) override {
        const std::uint64_t taken = bytes_below(disk_, ".");
        const std::uint64_t room = capacity_bytes_ - std::min(taken, capacity_bytes_);
        if (bytes.size() <= room || SWAPLAB_MUTANT("scenario.disk_never_full")) {
            return file_->append(bytes);
        }
        file_->append(bytes.first(room));
        throw StorageError(
            fmt::format("cannot write {}: no space left: {} of {} are taken, {} were to be "
                        "written; remove what is not needed, or save elsewhere",
                        path_, sim::format_bytes(taken), sim::format_bytes(capacity_bytes_),
                        sim::format_bytes(bytes.size())),
            {{"operation", "write"},
             {"file", path_},
             {"reason", "no space left"},
             {"limit", std::string(scenarios_own_limit)},
             {"expected", fmt::format("room for {} B", bytes.size())},
             {"found", fmt::format("room for {} B", room)}});
    }
    void sync() override { file_->sync(); }
    void close() override { file_->close(); }

  private:
    std::unique_ptr<WritableFile> file_;
    Storage& disk_;
    std::string path_;
    std::uint64_t capacity_bytes_;
};

class LimitedStorage : public StorageLayer {
  public:
    LimitedStorage(Storage& inner, std::uint64_t capacity_bytes)
        : StorageLayer(inner), capacity_bytes_(capacity_bytes) {}

    std::unique_ptr<WritableFile> create(const std::string& path) override {
        return std::make_unique<LimitedFile>(inner().create(path), inner(), path, capacity_bytes_);
    }

  private:
    std::uint64_t capacity_bytes_;
};

}  // namespace

std::unique_ptr<Storage> make_limited_storage(Storage& inner, std::uint64_t capacity_bytes) {
    return std::make_unique<LimitedStorage>(inner, capacity_bytes);
}

}  // namespace swaplab::harness::scenario
