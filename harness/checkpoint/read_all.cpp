#include "checkpoint/corrupt.hpp"
#include "checkpoint/state_tree.hpp"

namespace swaplab::harness {

optim::Value Checkpoint::read_all() {
    constexpr std::size_t spare_items = 4096;  // list positions whose content left no trace
    TreeBuilder builder(metadata_.entries.size() + spare_items);
    for (const MetadataEntry& entry : metadata_.entries) {
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
