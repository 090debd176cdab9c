#include "checkpoint/metadata_codec.hpp"
#include "checkpoint/pickle_reader.hpp"
#include "checkpoint/torch_names.hpp"

#include <fmt/format.h>

#include <array>
#include <unordered_map>

namespace swaplab::harness {
namespace {

using optim::Value;
using Kind = PickleNode::Kind;

constexpr std::size_t most_dims = 64;
constexpr std::size_t longest_path = 4096;
constexpr std::size_t longest_key_path = 200;

constexpr std::string_view metadata_class = "torch.distributed.checkpoint.metadata Metadata";
constexpr std::string_view tensor_class =
    "torch.distributed.checkpoint.metadata TensorStorageMetadata";
constexpr std::string_view bytes_class =
    "torch.distributed.checkpoint.metadata BytesStorageMetadata";
constexpr std::string_view properties_class =
    "torch.distributed.checkpoint.metadata TensorProperties";
constexpr std::string_view chunk_class =
    "torch.distributed.checkpoint.metadata ChunkStorageMetadata";
constexpr std::string_view index_class = "torch.distributed.checkpoint.metadata MetadataIndex";
constexpr std::string_view meta_class = "torch.distributed.checkpoint.metadata StorageMeta";
constexpr std::string_view format_class =
    "torch.distributed.checkpoint.metadata _MEM_FORMAT_ENCODING";
constexpr std::string_view info_class = "torch.distributed.checkpoint.filesystem _StorageInfo";
constexpr std::string_view layout_function = "torch.serialization _get_layout";
constexpr std::string_view getattr_function = "builtins getattr";
constexpr std::string_view size_class = "torch Size";
constexpr std::string_view path_class = "pathlib PosixPath";
constexpr std::string_view local_path_class = "pathlib._local PosixPath";

constexpr std::array<std::string_view, 27> metadata_globals{
    metadata_class,   tensor_class,    bytes_class,      properties_class, chunk_class,
    index_class,      meta_class,      format_class,     info_class,       layout_function,
    getattr_function, size_class,      path_class,       local_path_class, "torch float32",
    "torch float64",  "torch float16", "torch bfloat16", "torch int8",     "torch int16",
    "torch int32",    "torch int64",   "torch uint8",    "torch bool",     "torch uint16",
    "torch uint32",   "torch uint64"};

constexpr std::array<std::string_view, 3> memory_formats{"contiguous_format", "channels_last",
                                                         "preserve_format"};
constexpr std::array<std::string_view, 3> memory_format_members{
    "TORCH_CONTIGUOUS_FORMAT", "TORCH_CHANNELS_LAST", "TORCH_PRESERVE_FORMAT"};

[[noreturn]] void fail(NodeRef node, const std::string& found) {
    throw FormatError(node->position, found);
}

/// Repeated references must not unfold to far more than the file.
class Budget {
  public:
    explicit Budget(std::uint64_t input_bytes) : left_(32 * input_bytes + 4096) {}

    void spend(NodeRef node, std::uint64_t bytes) {
        if (bytes > left_) {
            fail(node, "objects that unfold to far more than their file");
        }
        left_ -= bytes;
    }

  private:
    std::uint64_t left_;
};

NodeRef require(NodeRef node, Kind kind, std::string_view what) {
    if (node->kind != kind) {
        fail(node, fmt::format("something else than {}", what));
    }
    return node;
}

void require_object(NodeRef node, std::string_view class_name) {
    if (!node->is_object(class_name)) {
        fail(node, fmt::format("something else than {}", class_name));
    }
}

NodeRef find_in(NodeRef dict, std::string_view key) {
    const auto& items = dict->items();
    for (std::size_t i = 0; i + 1 < items.size(); i += 2) {
        if (items[i]->kind == Kind::text && items[i]->text() == key) {
            return items[i + 1];
        }
    }
    return nullptr;
}

/// A dataclass's field; nullptr when absent or None.
NodeRef optional_field(NodeRef object, std::string_view name) {
    if (object->items().size() < 3) {
        return nullptr;
    }
    const NodeRef value =
        find_in(require(object->items()[2], Kind::dict, "an object's fields"), name);
    return value == nullptr || value->kind == Kind::none ? nullptr : value;
}

NodeRef field(NodeRef object, std::string_view name) {
    const NodeRef value = optional_field(object, name);
    if (value == nullptr) {
        fail(object, fmt::format("an object without {}", name));
    }
    return value;
}

std::int64_t natural(NodeRef node) {
    if (require(node, Kind::integer, "a number")->integer() < 0) {
        fail(node, fmt::format("{} where no negative number makes sense", node->integer()));
    }
    return node->integer();
}

/// torch.Size(tuple), or a bare tuple.
Shape shape_of(NodeRef node) {
    if (node->is_object(size_class) && node->items()[1]->items().size() == 1) {
        node = node->items()[1]->items()[0];
    }
    require(node, Kind::tuple, "a torch.Size");
    if (node->items().size() > most_dims) {
        fail(node, fmt::format("{} dims, at most {} make sense", node->items().size(), most_dims));
    }
    Shape shape;
    for (const NodeRef item : node->items()) {
        shape.push_back(natural(item));
    }
    return shape;
}

/// A tensor whose bytes cannot be counted cannot exist.
void check_countable(NodeRef node, const Shape& shape, sim::DType dtype) {
    std::int64_t bytes = static_cast<std::int64_t>(sim::size_of(dtype));
    for (const std::int64_t size : shape) {
        if (__builtin_mul_overflow(bytes, std::max<std::int64_t>(size, 1), &bytes)) {
            fail(node,
                 fmt::format("shape {}, more bytes than can be counted", optim::to_string(shape)));
        }
    }
}

void read_properties(NodeRef object, TensorEntry& entry) {
    require_object(object, properties_class);
    const auto& state = object->items();
    if (state.size() < 3 || state[2]->kind != Kind::tuple || state[2]->items().size() < 5) {
        fail(object, "TensorProperties without its five values");
    }
    const auto& values = state[2]->items();
    const auto dtype =
        values[0]->kind == Kind::global ? dtype_of_global(values[0]->text()) : std::nullopt;
    if (!dtype) {
        fail(values[0], "an element type that is not known");
    }
    entry.dtype = *dtype;
    require_object(values[1], layout_function);
    const auto& layout = values[1]->items()[1]->items();
    if (layout.size() != 1 || require(layout[0], Kind::text, "a layout")->text().size() > 64) {
        fail(values[1], "a layout that is not known");
    }
    entry.layout = layout[0]->text();
    entry.requires_grad = require(values[2], Kind::boolean, "requires_grad")->integer() != 0;
    entry.pin_memory = require(values[4], Kind::boolean, "pin_memory")->integer() != 0;
    const NodeRef format = values[3];
    for (std::size_t i = 0; i < memory_formats.size() && format->kind == Kind::object; ++i) {
        const auto& arguments = format->items()[1]->items();
        const bool by_number = format->is_object(format_class) && arguments.size() == 1 &&
                               arguments[0]->kind == Kind::integer &&
                               arguments[0]->integer() == static_cast<std::int64_t>(i);
        const bool by_name = format->is_object(getattr_function) && arguments.size() == 2 &&
                             arguments[0]->is_global(format_class) &&
                             arguments[1]->kind == Kind::text &&
                             arguments[1]->text() == memory_format_members[i];
        if (by_number || by_name) {
            entry.memory_format = memory_formats[i];
            return;
        }
    }
    fail(format, "a memory format that is not known");
}

TensorEntry read_tensor(NodeRef object, Budget& budget) {
    TensorEntry entry;
    read_properties(field(object, "properties"), entry);
    entry.global_shape = shape_of(field(object, "size"));
    check_countable(object, entry.global_shape, entry.dtype);
    for (const NodeRef chunk : require(field(object, "chunks"), Kind::list, "a list")->items()) {
        require_object(chunk, chunk_class);
        budget.spend(chunk, 64 + 16 * entry.global_shape.size());
        StoredChunk stored;
        stored.box = {shape_of(field(chunk, "offsets")), shape_of(field(chunk, "sizes"))};
        check_countable(chunk, stored.box.sizes, entry.dtype);
        if (stored.box.offsets.size() != entry.global_shape.size() ||
            stored.box.sizes.size() != entry.global_shape.size()) {
            fail(chunk, "a chunk with another number of dims than its tensor");
        }
        for (std::size_t dim = 0; dim < entry.global_shape.size(); ++dim) {
            if (stored.box.offsets[dim] > INT64_MAX - stored.box.sizes[dim]) {
                fail(chunk, "a chunk whose end cannot be counted");
            }
        }
        entry.chunks.push_back(std::move(stored));
    }
    return entry;
}

/// What storage_data says about one key.
struct StoredIndex {
    std::optional<Shape> offset;
    std::optional<std::int64_t> hint;
    StoredItem item;
};

StoredItem read_item(NodeRef object) {
    require_object(object, info_class);
    StoredItem item;
    const NodeRef path = require(field(object, "relative_path"), Kind::text, "a file name");
    if (path->text().empty() || path->text().size() > longest_path || path->text()[0] == '/' ||
        path->text().find("..") != std::string::npos) {
        fail(path, "a file name that leaves the checkpoint's directory");
    }
    item.relative_path = path->text();
    item.offset_bytes = static_cast<std::uint64_t>(natural(field(object, "offset")));
    item.length_bytes = static_cast<std::uint64_t>(natural(field(object, "length")));
    if (const NodeRef transforms = optional_field(object, "transform_descriptors");
        transforms != nullptr && !(transforms->kind == Kind::list && transforms->items().empty())) {
        fail(transforms, "an item that was transformed when written (compressed or encrypted)");
    }
    return item;
}

using StorageMap = std::unordered_map<std::string_view, std::vector<StoredIndex>>;

StorageMap read_storage_data(NodeRef dict, Budget& budget) {
    require(dict, Kind::dict, "storage_data's dict");
    StorageMap map;
    const auto& items = dict->items();
    for (std::size_t i = 0; i + 1 < items.size(); i += 2) {
        require_object(items[i], index_class);
        StoredIndex index;
        const NodeRef fqn = require(field(items[i], "fqn"), Kind::text, "a key");
        if (const NodeRef offset = optional_field(items[i], "offset")) {
            index.offset = shape_of(offset);
        }
        if (const NodeRef hint = optional_field(items[i], "index")) {
            index.hint = natural(hint);
        }
        index.item = read_item(items[i + 1]);
        budget.spend(items[i], 64 + index.item.relative_path.size());
        map[fqn->text()].push_back(std::move(index));
    }
    return map;
}

std::vector<Value> read_path(NodeRef node) {
    std::vector<Value> path;
    if (require(node, Kind::tuple, "a path")->items().size() > longest_key_path) {
        fail(node, "a path of too many parts");
    }
    for (const NodeRef part : node->items()) {
        if (part->kind == Kind::integer) {
            path.emplace_back(natural(part));
        } else {
            path.emplace_back(require(part, Kind::text, "a path of texts and numbers")->text());
        }
    }
    return path;
}

std::string path_text(NodeRef node) {
    if (node->kind == Kind::text) {
        return node->text();
    }
    if (!node->is_object(path_class) && !node->is_object(local_path_class)) {
        fail(node, "a checkpoint id that is no path");
    }
    std::string text;
    for (const NodeRef part : node->items()[1]->items()) {
        const std::string& name = require(part, Kind::text, "a part of a path")->text();
        text += text.empty() || text.back() == '/' ? name : "/" + name;
    }
    return text;
}

/// Joins the three dicts, each key's items in the order of its chunks.
class MetadataDecoder {
  public:
    MetadataDecoder(NodeRef root, std::uint64_t input_bytes)
        : root_(root),
          budget_(input_bytes),
          storage_(read_storage_data(field(root, "storage_data"), budget_)) {
        if (const NodeRef planner_data = optional_field(root, "planner_data")) {
            const auto& items = require(planner_data, Kind::dict, "planner_data's dict")->items();
            for (std::size_t i = 0; i + 1 < items.size(); i += 2) {
                const std::string& key = require(items[i], Kind::text, "a key")->text();
                budget_.spend(items[i], key.size());
                paths_[key] = items[i + 1];
                order_.push_back(key);
            }
        }
    }

    Metadata decode() {
        Metadata metadata;
        const NodeRef entries = require(field(root_, "state_dict_metadata"), Kind::dict, "a dict");
        const auto& items = entries->items();
        for (std::size_t i = 0; i + 1 < items.size(); i += 2) {
            metadata.entries.push_back(entry(items[i], items[i + 1]));
        }
        metadata.state_dict_order = std::move(order_);
        if (const NodeRef meta = optional_field(root_, "storage_meta")) {
            require_object(meta, meta_class);
            if (const NodeRef id = optional_field(meta, "checkpoint_id")) {
                metadata.checkpoint_id = path_text(id);
            }
            if (const NodeRef id = optional_field(meta, "save_id")) {
                metadata.save_id = require(id, Kind::text, "a save id")->text();
            }
        }
        if (const NodeRef version = optional_field(root_, "version")) {
            metadata.version = require(version, Kind::text, "a version")->text();
        }
        return metadata;
    }

  private:
    MetadataEntry entry(NodeRef key, NodeRef object) {
        MetadataEntry result;
        result.key = require(key, Kind::text, "a key")->text();
        budget_.spend(key, result.key.size());
        if (const auto path = paths_.find(result.key); path != paths_.end()) {
            result.path = read_path(path->second);
            for (const Value& part : result.path) {
                const auto* name = part.get_if<std::string>();
                budget_.spend(key, name == nullptr ? 8 : name->size());
            }
        }
        const auto found = storage_.find(result.key);
        static const std::vector<StoredIndex> nothing;
        const auto& stored = found == storage_.end() ? nothing : found->second;
        if (object->is_object(bytes_class)) {
            BytesEntry bytes;
            if (!stored.empty()) {
                bytes.stored = stored.front().item;
            }
            result.data = std::move(bytes);
            return result;
        }
        require_object(object, tensor_class);
        TensorEntry tensor = read_tensor(object, budget_);
        assign_items(key, tensor, stored);
        result.data = std::move(tensor);
        return result;
    }

    void assign_items(NodeRef key, TensorEntry& tensor, const std::vector<StoredIndex>& stored) {
        std::map<Shape, const StoredIndex*> by_offset;
        for (const StoredIndex& index : stored) {
            if (index.offset) {
                by_offset.emplace(*index.offset, &index);
            }
        }
        for (StoredChunk& chunk : tensor.chunks) {
            if (const auto found = by_offset.find(chunk.box.offsets); found != by_offset.end()) {
                chunk.stored = found->second->item;
                chunk.index_hint = found->second->hint;
                budget_.spend(key, chunk.stored->relative_path.size());
            }
        }
    }

    NodeRef root_;
    Budget budget_;
    StorageMap storage_;
    std::unordered_map<std::string_view, NodeRef> paths_;
    std::vector<std::string> order_;
};

}  // namespace

Metadata decode_metadata(std::span<const std::byte> bytes) {
    const PickleGraph graph = read_pickle(bytes, {metadata_globals, false});
    require_object(graph.root, metadata_class);
    return MetadataDecoder(graph.root, bytes.size()).decode();
}

}  // namespace swaplab::harness
