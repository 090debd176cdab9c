#include "files/whole_file.hpp"

#include "swaplab/sim/mutant.hpp"
#include "swaplab/sim/units.hpp"

#include <fmt/format.h>

namespace swaplab::harness {

std::vector<std::byte> read_whole(Storage& storage, const std::string& path,
                                  std::uint64_t most_bytes) {
    const auto file = storage.open(path);
    if (file->size() > most_bytes) {
        throw StorageError(
            fmt::format("cannot read {}: it has {} B, more than the {} B of the largest such file; "
                        "give another one",
                        path, sim::with_thousands(file->size()), sim::with_thousands(most_bytes)),
            {{"operation", "read"},
             {"file", path},
             {"expected", std::to_string(most_bytes)},
             {"found", std::to_string(file->size())}});
    }
    std::vector<std::byte> bytes(file->size());
    file->read(0, bytes);
    return bytes;
}

void write_new(Storage& storage, const std::string& path, std::span<const std::byte> bytes) {
    if (storage.exists(path) && !SWAPLAB_MUTANT("files.overwrite")) {
        throw StorageError(
            fmt::format("cannot write {}: already exists; remove it or choose another name", path),
            {{"operation", "write"}, {"file", path}, {"reason", "already exists"}});
    }
    const std::string unfinished = path + ".part";
    try {
        const auto file = storage.create(unfinished);
        file->append(bytes);
        file->close();
        storage.rename(unfinished, path);
    } catch (const StorageError&) {
        if (storage.exists(unfinished) && !SWAPLAB_MUTANT("files.leave_part")) {
            storage.remove(unfinished);
        }
        throw;
    }
}

void write_new(Storage& storage, const std::string& path, const std::string& text) {
    write_new(storage, path, std::as_bytes(std::span(text.data(), text.size())));
}

}  // namespace swaplab::harness
