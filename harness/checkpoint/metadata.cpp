#include "checkpoint/paths.hpp"

#include "swaplab/harness/dcp_metadata.hpp"

#include <cstdio>

namespace swaplab::harness {

std::optional<int> writer_of(const std::string& relative_path) {
    const std::string name = base_name_of(relative_path);
    int rank = 0;
    int file = 0;
    int end = 0;
    // NOLINTNEXTLINE(cert-err34-c): no match is an answer.
    const int matched = std::sscanf(name.c_str(), "__%9d_%9d.distcp%n", &rank, &file, &end);
    const bool whole = matched == 2 && end > 0 && name[static_cast<std::size_t>(end)] == '\0';
    return whole && rank >= 0 ? std::optional(rank) : std::nullopt;
}

const MetadataEntry* Metadata::find(const std::string& key) const {
    for (const MetadataEntry& entry : entries) {
        if (entry.key == key) {
            return &entry;
        }
    }
    return nullptr;
}

}  // namespace swaplab::harness
