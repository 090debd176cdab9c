#include "swaplab/harness/checkpoint.hpp"

#include "checkpoint/corrupt.hpp"
#include "checkpoint/item_reader.hpp"
#include "checkpoint/metadata_codec.hpp"
#include "checkpoint/paths.hpp"
#include "checkpoint/payload.hpp"
#include "checkpoint/storage_error.hpp"
#include "checkpoint/tiling.hpp"

#include "swaplab/sim/mutant.hpp"
#include "swaplab/sim/units.hpp"

#include <fmt/format.h>

namespace swaplab::harness {
namespace {

constexpr std::uint64_t largest_metadata_bytes = std::uint64_t{2} << 30U;
constexpr std::size_t most_open_files = 64;
constexpr std::size_t most_known_items = 65536;
constexpr std::string_view metadata_name = ".metadata";

[[noreturn]] void fail_without_metadata(Storage& storage, const std::string& directory) {
    std::size_t data_files = 0;
    for (const DirectoryEntry& entry : storage.list(directory)) {
        data_files += entry.name.ends_with(".distcp") ? 1U : 0U;
    }
    if (data_files == 0) {
        throw storage_error("open", directory, "is no checkpoint",
                            fmt::format("{} is no checkpoint: it holds no .metadata and no data "
                                        "files; give the directory that a save wrote",
                                        directory));
    }
    throw CheckpointCorrupt(
        fmt::format("{} holds {} data files but no .metadata: its save was not finished; use an "
                    "older checkpoint",
                    directory, data_files),
        {{"file", join_path(directory, metadata_name)},
         {"expected", ".metadata"},
         {"found", "unfinished save"}});
}

Metadata read_metadata(Storage& storage, const std::string& directory) {
    if (!storage.exists(directory)) {
        throw missing_error(storage, "open", directory);
    }
    const std::string path = join_path(directory, metadata_name);
    if (!storage.exists(path)) {
        fail_without_metadata(storage, directory);
    }
    const std::unique_ptr<ReadableFile> file = storage.open(path);
    if (file->size() > largest_metadata_bytes) {
        throw corrupt({directory, std::string(metadata_name), 0, ""}, "at most 2 GiB",
                      sim::format_bytes(file->size()));
    }
    std::vector<std::byte> bytes(file->size());
    file->read(0, bytes);
    try {
        return decode_metadata(bytes);
    } catch (const FormatError& error) {
        throw corrupt({directory, std::string(metadata_name), error.position(), ""},
                      "a DCP metadata file", error.found());
    }
}

}  // namespace

struct Checkpoint::OpenItem {
    StoredPayload payload;
};

Checkpoint::Checkpoint(Storage& storage, std::string directory, Checksums checksums)
    : storage_(&storage),
      directory_(std::move(directory)),
      checksums_(checksums),
      metadata_(read_metadata(storage, directory_)) {
    for (std::size_t i = 0; i < metadata_.entries.size(); ++i) {
        by_key_.emplace(metadata_.entries[i].key, i);
    }
}

const MetadataEntry* Checkpoint::find(const std::string& key) const {
    const auto found = by_key_.find(key);
    return found == by_key_.end() ? nullptr : &metadata_.entries[found->second];
}

ReadableFile& Checkpoint::file(const std::string& relative_path) {
    const auto found = files_.find(relative_path);
    if (found != files_.end()) {
        return *found->second;
    }
    if (files_.size() >= most_open_files) {
        files_.clear();
    }
    try {
        std::shared_ptr<ReadableFile> opened = storage_->open(join_path(directory_, relative_path));
        return *files_.emplace(relative_path, std::move(opened)).first->second;
    } catch (const StorageError& error) {
        if (field_of(error, "reason") != "does not exist") {
            throw;
        }
        throw corrupt({directory_, relative_path, std::nullopt, ""}, "a data file", "no such file");
    }
}

std::uint64_t Checkpoint::file_bytes(const std::string& relative_path) {
    return file(relative_path).size();
}

const TensorEntry& Checkpoint::tensor_entry(const std::string& key) const {
    const MetadataEntry* entry = find(key);
    if (entry == nullptr || entry->tensor() == nullptr) {
        throw corrupt({directory_, std::string(metadata_name), std::nullopt, key}, "a tensor",
                      entry == nullptr ? "no such key" : "an item that is no tensor");
    }
    return *entry->tensor();
}

optim::Value Checkpoint::read_value(const std::string& key) {
    const MetadataEntry* entry = find(key);
    const auto* bytes = entry == nullptr ? nullptr : std::get_if<BytesEntry>(&entry->data);
    if (bytes == nullptr || !bytes->stored) {
        throw corrupt({directory_, std::string(metadata_name), std::nullopt, key}, "a stored value",
                      entry == nullptr   ? "no such key"
                      : bytes == nullptr ? "a tensor"
                                         : "no item for it");
    }
    const StoredItem& stored = *bytes->stored;
    try {
        ZipArchive archive(file(stored.relative_path), stored.offset_bytes, stored.length_bytes);
        return read_stored_value(archive);
    } catch (const FormatError& error) {
        throw corrupt(
            {directory_, stored.relative_path, stored.offset_bytes + error.position(), key},
            "a value that torch.save wrote", error.found());
    }
}

Checkpoint::OpenItem& Checkpoint::item(const std::string& key, const StoredChunk& chunk) {
    if (!chunk.stored) {
        throw corrupt({directory_, std::string(metadata_name), std::nullopt, key},
                      fmt::format("an item for chunk {}", optim::to_string(chunk.box)), "none");
    }
    const StoredItem& stored = *chunk.stored;
    const std::pair place{stored.relative_path, stored.offset_bytes};
    if (const auto found = items_.find(place); found != items_.end()) {
        return *found->second;
    }
    try {
        ZipArchive archive(file(stored.relative_path), stored.offset_bytes, stored.length_bytes);
        if (items_.size() >= most_known_items) {
            items_.clear();
        }
        auto opened = std::make_shared<OpenItem>();
        opened->payload.tensor = read_stored_tensor(archive);
        opened->payload.item_offset = stored.offset_bytes;
        opened->payload.compared = checksums_ == Checksums::compared;
        return *items_.emplace(place, std::move(opened)).first->second;
    } catch (const FormatError& error) {
        throw corrupt(
            {directory_, stored.relative_path, stored.offset_bytes + error.position(), key},
            "a tensor that torch.save wrote", error.found());
    }
}

ItemHeader Checkpoint::read_header(const std::string& key, const StoredChunk& chunk) {
    const StoredTensor& tensor = item(key, chunk).payload.tensor;
    return {tensor.dtype, tensor.shape, tensor.record_bytes, tensor.record_offset};
}

std::uint64_t Checkpoint::read_present(const std::string& key, const Box& box,
                                       std::uint64_t offset_bytes, std::span<std::byte> out) {
    const TensorEntry& entry = tensor_entry(key);
    std::uint64_t filled = 0;
    for (const StoredChunk& chunk : entry.chunks) {
        if (chunk.box.sizes.size() != box.sizes.size() || !optim::intersect(chunk.box, box)) {
            continue;
        }
        StoredPayload& payload = item(key, chunk).payload;
        const StoredItem& stored = *chunk.stored;
        const bool same =
            payload.tensor.dtype == entry.dtype && payload.tensor.shape == chunk.box.sizes;
        if (!same && !SWAPLAB_MUTANT("read.no_header_check")) {
            throw corrupt(
                {directory_, stored.relative_path, stored.offset_bytes, key},
                fmt::format("{} {}", sim::name_of(entry.dtype), optim::to_string(chunk.box.sizes)),
                fmt::format("{} {}", sim::name_of(payload.tensor.dtype),
                            optim::to_string(payload.tensor.shape)));
        }
        try {
            filled +=
                copy_shared(file(stored.relative_path), payload, chunk.box, box, offset_bytes, out);
        } catch (const FormatError& error) {
            throw corrupt(
                {directory_, stored.relative_path, stored.offset_bytes + error.position(), key},
                "what was written", error.found());
        }
    }
    return filled;
}

void Checkpoint::read_box(const std::string& key, const Box& box, std::uint64_t offset_bytes,
                          std::span<std::byte> out) {
    const std::uint64_t filled = read_present(key, box, offset_bytes, out);
    if (filled != out.size() && !SWAPLAB_MUTANT("read.no_coverage_check")) {
        throw corrupt({directory_, std::string(metadata_name), std::nullopt, key},
                      fmt::format("{} in chunks, each byte once", sim::format_bytes(out.size())),
                      sim::format_bytes(filled));
    }
}

std::vector<std::byte> Checkpoint::read_tensor(const std::string& key) {
    const TensorEntry& entry = tensor_entry(key);
    const std::vector<TilingFault> faults = tiling_faults(entry);
    if (!faults.empty()) {
        throw corrupt({directory_, std::string(metadata_name), std::nullopt, key},
                      "chunks that cover the tensor once", describe(faults.front(), entry));
    }
    std::map<std::string, std::uint64_t> sizes;
    for (const StoredChunk& chunk : entry.chunks) {
        if (chunk.stored && optim::numel(chunk.box.sizes) > 0) {
            sizes.emplace(chunk.stored->relative_path, file_bytes(chunk.stored->relative_path));
        }
    }
    std::uint64_t there = 0;
    for (const auto& size : sizes) {
        there += size.second;
    }
    const std::uint64_t bytes =
        static_cast<std::uint64_t>(optim::numel(entry.global_shape)) * sim::size_of(entry.dtype);
    if (bytes > there) {
        throw corrupt({directory_, std::string(metadata_name), std::nullopt, key},
                      fmt::format("files of at least {}", sim::format_bytes(bytes)),
                      fmt::format("{} in all of its files", sim::format_bytes(there)));
    }
    std::vector<std::byte> result(bytes);
    read_box(key, {Shape(entry.global_shape.size(), 0), entry.global_shape}, 0, result);
    return result;
}

}  // namespace swaplab::harness
