#include "swaplab/harness/dcp_metadata.hpp"

namespace swaplab::harness {

const MetadataEntry* Metadata::find(const std::string& key) const {
    for (const MetadataEntry& entry : entries) {
        if (entry.key == key) {
            return &entry;
        }
    }
    return nullptr;
}

}  // namespace swaplab::harness
