#include "checkpoint/corrupt.hpp"
#include "checkpoint/state_tree.hpp"

#include <set>

namespace swaplab::harness {
namespace {

/// Entries in state dict order, then those that the order does not name.
std::vector<const MetadataEntry*> in_saved_order(const Metadata& metadata,
                                                 const Checkpoint& checkpoint) {
    std::vector<const MetadataEntry*> ordered;
    std::set<const MetadataEntry*> seen;
    for (const std::string& key : metadata.state_dict_order) {
        const MetadataEntry* entry = checkpoint.find(key);
        if (entry != nullptr && seen.insert(entry).second) {
            ordered.push_back(entry);
        }
    }
    for (const MetadataEntry& entry : metadata.entries) {
        if (seen.count(&entry) == 0) {
            ordered.push_back(&entry);
        }
    }
    return ordered;
}

}  // namespace

optim::Value Checkpoint::read_all() {
    constexpr std::size_t spare_items = 4096;  // list positions whose content left no trace
    TreeBuilder builder(metadata_.entries.size() + spare_items);
    for (const MetadataEntry* place : in_saved_order(metadata_, *this)) {
        const MetadataEntry& entry = *place;
        optim::Value value;
        if (const TensorEntry* tensor = entry.tensor()) {
            const std::vector<std::byte> bytes = read_tensor(entry.key);
            auto storage = optim::make_host_storage(bytes.size());
            storage->write(0, bytes);
            value = optim::Tensor(tensor->dtype, tensor->global_shape, std::move(storage));
        } else {
            value = read_value(entry.key);
        }
        const std::vector<optim::Value> whole_key{entry.key};
        if (!builder.put(entry.path.empty() ? whole_key : entry.path, std::move(value))) {
            throw corrupt({directory_, ".metadata", std::nullopt, entry.key},
                          "a path of its own in the state dict", "one that another key occupies");
        }
    }
    return std::move(builder).take();
}

}  // namespace swaplab::harness
