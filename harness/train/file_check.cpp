#include "train/file_check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace swaplab::harness {
namespace {

/// How far each file is used by the keys that begin with `prefix`.
std::map<std::string, std::uint64_t> needed_bytes(const Metadata& metadata,
                                                  const std::string& prefix) {
    std::map<std::string, std::uint64_t> needed;
    const auto use = [&](const std::optional<StoredItem>& item) {
        if (item) {
            std::uint64_t& end = needed[item->relative_path];
            end = std::max(end, item->offset_bytes + item->length_bytes);
        }
    };
    for (const MetadataEntry& entry : metadata.entries) {
        if (!entry.key.starts_with(prefix)) {
            continue;
        }
        if (const auto* bytes = std::get_if<BytesEntry>(&entry.data)) {
            use(bytes->stored);
        }
        if (const TensorEntry* tensor = entry.tensor()) {
            for (const StoredChunk& chunk : tensor->chunks) {
                use(chunk.stored);
            }
        }
    }
    return needed;
}

}  // namespace

std::vector<optim::Mismatch> find_broken_files(Checkpoint& checkpoint, const std::string& prefix,
                                               int rank) {
    std::map<std::string, std::uint64_t> there;
    for (const DirectoryEntry& entry : checkpoint.storage().list(checkpoint.directory())) {
        if (!entry.is_directory) {
            there[entry.name] = entry.bytes;
        }
    }
    std::vector<optim::Mismatch> found;
    for (const auto& [file, bytes] : needed_bytes(checkpoint.metadata(), prefix)) {
        const auto size = there.find(file);
        const std::string expected = fmt::format("{} B", bytes);
        if (size == there.end()) {
            found.push_back({rank, "", file, expected, "missing", "", {}});
        } else if (size->second < bytes) {
            found.push_back(
                {rank, "", file, expected, fmt::format("{} B", size->second), "truncated", {}});
        }
    }
    return found;
}

}  // namespace swaplab::harness
