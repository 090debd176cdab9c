#include "checkpoint/metadata_codec.hpp"
#include "checkpoint/pickle_opcode.hpp"
#include "checkpoint/pickle_writer.hpp"

#include "swaplab/sim/assert.hpp"

#include <algorithm>
#include <map>

namespace swaplab::harness {
namespace {

constexpr std::string_view metadata_module = "torch.distributed.checkpoint.metadata";
constexpr std::string_view filesystem_module = "torch.distributed.checkpoint.filesystem";

std::vector<const MetadataEntry*> in_state_dict_order(const Metadata& metadata) {
    std::map<std::string, const MetadataEntry*> by_key;
    for (const MetadataEntry& entry : metadata.entries) {
        by_key.emplace(entry.key, &entry);
    }
    std::vector<const MetadataEntry*> ordered;
    for (const std::string& key : metadata.state_dict_order) {
        const auto found = by_key.find(key);
        SWAPLAB_ASSERT(found != by_key.end(), "the state dict's order names a key without entry");
        ordered.push_back(found->second);
    }
    SWAPLAB_ASSERT(ordered.size() == by_key.size(), "the state dict's order misses keys");
    return ordered;
}

class MetadataEncoder {
  public:
    std::string encode(const Metadata& metadata) {
        begin_object(metadata_module, "Metadata");
        key("state_dict_metadata");
        dict(metadata.entries, [&](const MetadataEntry& entry) {
            pickle_.interned(entry.key);
            write_entry(entry);
        });
        key("planner_data");
        dict(in_state_dict_order(metadata), [&](const MetadataEntry* entry) {
            pickle_.interned(entry->key);
            write_path(entry->path);
        });
        key("storage_data");
        dict(metadata.entries, [&](const MetadataEntry& entry) { write_items(entry); });
        key("storage_meta");
        write_storage_meta(metadata);
        end_object();
        return std::move(pickle_).finish();
    }

  private:
    // --- forms that repeat ---
    void begin_object(std::string_view module, std::string_view name) {
        pickle_.global(module, name);
        pickle_.op(opcode::empty_tuple);
        pickle_.op(opcode::newobj);
        pickle_.op(opcode::empty_dict);
        pickle_.op(opcode::mark);
    }
    void end_object() {
        pickle_.op(opcode::setitems);
        pickle_.op(opcode::build);
    }
    void key(std::string_view name) { pickle_.interned(name); }

    template <class Items, class WriteOne>
    void dict(const Items& items, WriteOne write_one) {
        pickle_.op(opcode::empty_dict);
        pickle_.op(opcode::mark);
        std::for_each(items.begin(), items.end(), write_one);
        pickle_.op(opcode::setitems);
    }

    void write_size(const Shape& shape) {
        pickle_.global("torch", "Size");
        pickle_.op(opcode::mark);
        for (const std::int64_t size : shape) {
            pickle_.integer(size);
        }
        pickle_.op(opcode::tuple);
        pickle_.op(opcode::tuple1);
        pickle_.op(opcode::reduce);
    }

    // --- state_dict_metadata ---
    void write_entry(const MetadataEntry& entry) {
        const TensorEntry* tensor = entry.tensor();
        if (tensor == nullptr) {
            pickle_.global(metadata_module, "BytesStorageMetadata");
            pickle_.op(opcode::empty_tuple);
            pickle_.op(opcode::newobj);
            return;
        }
        begin_object(metadata_module, "TensorStorageMetadata");
        key("properties");
        write_properties(*tensor);
        key("size");
        write_size(tensor->global_shape);
        key("chunks");
        pickle_.op(opcode::empty_list);
        pickle_.op(opcode::mark);
        for (const StoredChunk& chunk : tensor->chunks) {
            begin_object(metadata_module, "ChunkStorageMetadata");
            key("offsets");
            write_size(chunk.box.offsets);
            key("sizes");
            write_size(chunk.box.sizes);
            end_object();
        }
        pickle_.op(opcode::appends);
        end_object();
    }

    /// Five values, as every PyTorch from 2.1 to 2.15 reads them.
    void write_properties(const TensorEntry& tensor) {
        pickle_.global(metadata_module, "TensorProperties");
        pickle_.op(opcode::empty_tuple);
        pickle_.op(opcode::newobj);
        pickle_.op(opcode::mark);
        pickle_.global("torch", sim::name_of(tensor.dtype));
        pickle_.global("torch.serialization", "_get_layout");
        pickle_.interned(tensor.layout);
        pickle_.op(opcode::tuple1);
        pickle_.op(opcode::reduce);
        pickle_.boolean(tensor.requires_grad);
        pickle_.global(metadata_module, "_MEM_FORMAT_ENCODING");
        pickle_.integer(tensor.memory_format == "contiguous_format" ? 0
                        : tensor.memory_format == "channels_last"   ? 1
                                                                    : 2);
        pickle_.op(opcode::tuple1);
        pickle_.op(opcode::reduce);
        pickle_.boolean(tensor.pin_memory);
        pickle_.op(opcode::tuple);
        pickle_.op(opcode::build);
    }

    // --- planner_data ---
    void write_path(const std::vector<optim::Value>& path) {
        pickle_.op(opcode::mark);
        for (const optim::Value& part : path) {
            write_path_part(part);
        }
        pickle_.op(opcode::tuple);
    }

    void write_path_part(const optim::Value& part) {
        if (const auto* index = part.get_if<std::int64_t>()) {
            pickle_.integer(*index);
            return;
        }
        const auto* name = part.get_if<std::string>();
        SWAPLAB_ASSERT(name != nullptr, "a path part is a text or a number");
        pickle_.interned(*name);
    }

    // --- storage_data ---
    void write_items(const MetadataEntry& entry) {
        if (const TensorEntry* tensor = entry.tensor()) {
            for (const StoredChunk& chunk : tensor->chunks) {
                write_index(entry.key, chunk.index_hint, &chunk.box.offsets);
                write_info(chunk.stored);
            }
            return;
        }
        write_index(entry.key, std::nullopt, nullptr);
        write_info(std::get<BytesEntry>(entry.data).stored);
    }

    void write_index(const std::string& fqn, std::optional<std::int64_t> hint,
                     const Shape* offset) {
        begin_object(metadata_module, "MetadataIndex");
        key("fqn");
        pickle_.interned(fqn);
        key("index");
        if (hint) {
            pickle_.integer(*hint);
        } else {
            pickle_.none();
        }
        if (offset != nullptr) {
            key("offset");
            write_size(*offset);
        }
        end_object();
    }

    void write_info(const std::optional<StoredItem>& item) {
        SWAPLAB_ASSERT(item.has_value(), "every chunk has an item when .metadata is written");
        begin_object(filesystem_module, "_StorageInfo");
        key("relative_path");
        pickle_.interned(item->relative_path);
        key("offset");
        pickle_.integer(static_cast<std::int64_t>(item->offset_bytes));
        key("length");
        pickle_.integer(static_cast<std::int64_t>(item->length_bytes));
        end_object();
    }

    // --- storage_meta ---
    void write_storage_meta(const Metadata& metadata) {
        begin_object(metadata_module, "StorageMeta");
        key("checkpoint_id");
        pickle_.text(metadata.checkpoint_id);
        key("save_id");
        pickle_.text(metadata.save_id);
        key("load_id");
        pickle_.none();
        key("modules");
        pickle_.op(opcode::empty_list);
        end_object();
    }

    PickleWriter pickle_{4};
};

}  // namespace

std::string encode_metadata(const Metadata& metadata) {
    return MetadataEncoder().encode(metadata);
}

}  // namespace swaplab::harness
