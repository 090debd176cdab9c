#include "checkpoint/item_reader.hpp"

#include "checkpoint/pickle_reader.hpp"
#include "checkpoint/torch_names.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

namespace swaplab::harness {
namespace {

using optim::Shape;
using optim::Value;
using Kind = PickleNode::Kind;

constexpr std::uint64_t largest_pickle_bytes = std::uint64_t{256} << 20U;
constexpr std::uint64_t largest_small_record_bytes = 64;
constexpr std::size_t most_dims = 64;
constexpr int deepest_nesting = 200;

constexpr std::string_view rebuild_v2 = "torch._utils _rebuild_tensor_v2";
constexpr std::string_view rebuild_v3 = "torch._utils _rebuild_tensor_v3";
constexpr std::string_view size_class = "torch Size";
constexpr std::string_view untyped_storage = "torch.storage UntypedStorage";

constexpr std::array<std::string_view, 20> item_globals{rebuild_v2,
                                                        rebuild_v3,
                                                        size_class,
                                                        untyped_storage,
                                                        "collections OrderedDict",
                                                        "__builtin__ bytes",
                                                        "_codecs encode",
                                                        "torch FloatStorage",
                                                        "torch DoubleStorage",
                                                        "torch HalfStorage",
                                                        "torch BFloat16Storage",
                                                        "torch LongStorage",
                                                        "torch IntStorage",
                                                        "torch ShortStorage",
                                                        "torch CharStorage",
                                                        "torch ByteStorage",
                                                        "torch BoolStorage",
                                                        "torch uint16",
                                                        "torch uint32",
                                                        "torch uint64"};

std::string small_record(ZipArchive& archive, const ZipRecord& record) {
    std::string text;
    for (const std::byte byte : archive.read(record, largest_small_record_bytes)) {
        text += static_cast<char>(byte);
    }
    return text;
}

void check_version(ZipArchive& archive) {
    const ZipRecord* record = archive.find("version");
    if (record == nullptr) {
        record = &archive.require(".data/version");
    }
    const std::string text = small_record(archive, *record);
    int version = 0;
    std::from_chars(text.data(), text.data() + text.size(), version);
    if (version < 1 || version > 10) {
        throw FormatError(record->header_offset,
                          fmt::format("archive version \"{}\", 1 to 10 are known",
                                      text.substr(0, text.find('\n'))));
    }
}

void check_byte_order(ZipArchive& archive) {
    const ZipRecord* record = archive.find("byteorder");
    if (record == nullptr) {
        return;
    }
    const std::string order = small_record(archive, *record);
    if (order != "little") {
        throw FormatError(record->header_offset,
                          fmt::format("byte order \"{}\", only little is read", order));
    }
}

bool has_no_element(const Shape& shape) {
    return std::find(shape.begin(), shape.end(), 0) != shape.end();
}

struct ItemPickle {
    PickleGraph graph;
    std::uint64_t offset = 0;  ///< of data.pkl's bytes in the item
    std::uint64_t bytes = 0;
};

ItemPickle read_item_pickle(ZipArchive& archive) {
    check_version(archive);
    const ZipRecord& record = archive.require("data.pkl");
    ItemPickle result;
    result.bytes = record.bytes;
    result.offset = archive.payload_offset(record);
    const std::vector<std::byte> bytes = archive.read(record, largest_pickle_bytes);
    try {
        result.graph = read_pickle(bytes, {item_globals, true});
    } catch (const FormatError& error) {
        throw FormatError(result.offset + error.position(), error.found());
    }
    return result;
}

std::string describe(NodeRef node) {
    switch (node->kind) {
        case Kind::foreign:
            return fmt::format("class {}, which is not opened", node->text());
        case Kind::none:
            return "None";
        case Kind::floating:
            return "a float";
        case Kind::integer:
            return "an int";
        case Kind::text:
            return "a str";
        case Kind::dict:
            return "a dict";
        case Kind::list:
            return "a list";
        default:
            return "an object";
    }
}

/// Makes Values of nodes. `budget` bounds what repeated references may unfold to.
class ItemDecoder {
  public:
    ItemDecoder(ZipArchive& archive, const ItemPickle& pickle)
        : archive_(archive), offset_(pickle.offset), budget_(64 * pickle.bytes + 4096) {}

    [[noreturn]] void fail(NodeRef node, const std::string& found) const {
        throw FormatError(offset_ + node->position, found);
    }

    StoredTensor tensor(NodeRef node) {
        const bool is_v3 = node->is_object(rebuild_v3);
        if (!is_v3 && !node->is_object(rebuild_v2)) {
            fail(node, fmt::format("{} where a tensor should be", describe(node)));
        }
        const auto& arguments = node->items()[1]->items();
        if (arguments.size() < (is_v3 ? 7U : 6U)) {
            fail(node, "a tensor with too few arguments");
        }
        StoredTensor result;
        std::uint64_t storage_bytes = storage(arguments[0], result);
        if (is_v3) {
            const auto dtype = arguments[6]->kind == Kind::global
                                   ? dtype_of_global(arguments[6]->text())
                                   : std::nullopt;
            if (!dtype) {
                fail(node, "a tensor of an element type that is not known");
            }
            result.dtype = *dtype;
        }
        result.first_element = static_cast<std::uint64_t>(natural(arguments[1]));
        result.shape = shape(arguments[2]);
        result.strides = shape(arguments[3]);
        if (storage_bytes > result.record_bytes) {
            fail(node, fmt::format("a storage of {} bytes in a record of {}", storage_bytes,
                                   result.record_bytes));
        }
        check_inside(node, result);
        return result;
    }

    Value value(NodeRef node, int depth = 0) {
        spend(node, 1);
        if (depth > deepest_nesting) {
            fail(node, "objects nested too deeply");
        }
        switch (node->kind) {
            case Kind::none:
                return optim::None{};
            case Kind::boolean:
                return node->integer() != 0;
            case Kind::integer:
                return node->integer();
            case Kind::floating:
                return node->floating();
            case Kind::big_integer:
                return optim::BigInt{text(node)};
            case Kind::text:
                return text(node);
            case Kind::bytes:
                return optim::PyBytes{text(node)};
            case Kind::tuple:
                return optim::Tuple{values(node, depth)};
            case Kind::list:
                return optim::List{values(node, depth)};
            case Kind::dict:
            case Kind::ordered_dict:
                return dict(node, depth);
            case Kind::object:
                return object(node, depth);
            case Kind::global:
                return opaque(node, node->text());
            case Kind::storage:
                return opaque(node, "torch.storage");
            case Kind::foreign:
                return opaque(node, node->text());
        }
        fail(node, "an object of unknown kind");
    }

  private:
    void spend(NodeRef node, std::uint64_t amount) {
        if (amount > budget_) {
            fail(node, "objects that unfold to far more than their pickle");
        }
        budget_ -= amount;
    }

    std::string text(NodeRef node) {
        spend(node, node->text().size());
        return node->text();
    }

    Value opaque(NodeRef node, std::string name) const {
        std::replace(name.begin(), name.end(), ' ', '.');
        return optim::Opaque{std::move(name), offset_ + node->position};
    }

    std::vector<Value> values(NodeRef node, int depth) {
        std::vector<Value> result;
        for (const NodeRef item : node->items()) {
            result.push_back(value(item, depth + 1));
        }
        return result;
    }

    Value dict(NodeRef node, int depth) {
        optim::Dict result;
        result.ordered_dict = node->kind == Kind::ordered_dict;
        const auto& items = node->items();
        for (std::size_t i = 0; i + 1 < items.size(); i += 2) {
            Value key = value(items[i], depth + 1);
            result.items.emplace_back(std::move(key), value(items[i + 1], depth + 1));
        }
        return result;
    }

    Value object(NodeRef node, int depth) {
        const auto& arguments = node->items()[1]->items();
        if (node->is_object(rebuild_v2) || node->is_object(rebuild_v3)) {
            return host_tensor(node);
        }
        if (node->is_object(size_class) && arguments.size() == 1 &&
            arguments[0]->kind == Kind::tuple) {
            return value(arguments[0], depth + 1);
        }
        return opaque(node->items()[0], node->items()[0]->text());
    }

    Value host_tensor(NodeRef node) {
        const StoredTensor stored = tensor(node);
        if (!is_row_major(stored)) {
            fail(node, "a tensor with strides inside another object");
        }
        const std::uint64_t item_bytes = sim::size_of(stored.dtype);
        const std::int64_t count = has_no_element(stored.shape) ? 0 : optim::numel(stored.shape);
        std::vector<std::byte> bytes(static_cast<std::uint64_t>(count) * item_bytes);
        spend(node, bytes.size() / 64);
        archive_.read_at(stored.record_offset + stored.first_element * item_bytes, bytes);
        auto storage = optim::make_host_storage(bytes.size());
        storage->write(0, bytes);
        return optim::Tensor(stored.dtype, stored.shape, std::move(storage));
    }

    std::int64_t natural(NodeRef node) const {
        if (node->kind != Kind::integer || node->integer() < 0) {
            fail(node, "something else than a size where a size should be");
        }
        return node->integer();
    }

    Shape shape(NodeRef node) const {
        if (node->kind != Kind::tuple || node->items().size() > most_dims) {
            fail(node, "something else than a shape where a shape should be");
        }
        Shape result;
        for (const NodeRef item : node->items()) {
            result.push_back(natural(item));
        }
        return result;
    }

    /// Fills the storage's place and dtype; returns the bytes it claims to have.
    std::uint64_t storage(NodeRef node, StoredTensor& result) {
        if (node->kind != Kind::storage || node->items().size() != 5 ||
            node->items()[1]->kind != Kind::global || node->items()[2]->kind != Kind::text) {
            fail(node, "a tensor without a storage");
        }
        const auto& id = node->items();
        std::uint64_t item_bytes = 1;
        if (!id[1]->is_global(untyped_storage)) {
            const auto dtype = dtype_of_storage_global(id[1]->text());
            if (!dtype) {
                fail(node, fmt::format("a storage of class {}", id[1]->text()));
            }
            result.dtype = *dtype;
            item_bytes = sim::size_of(*dtype);
        }
        const ZipRecord& record = archive_.require("data/" + id[2]->text());
        result.record_offset = archive_.payload_offset(record);
        result.record_bytes = record.bytes;
        result.record_crc32 = record.crc32;
        const auto count = static_cast<std::uint64_t>(natural(id[4]));
        if (count > record.bytes / item_bytes) {
            fail(node, fmt::format("a storage of {} elements in a record of {} bytes", count,
                                   record.bytes));
        }
        return count * item_bytes;
    }

    /// Every element must lie in the record.
    void check_inside(NodeRef node, const StoredTensor& stored) const {
        if (stored.shape.size() != stored.strides.size()) {
            fail(node, "a tensor whose sizes and strides differ in number");
        }
        const std::uint64_t elements = stored.record_bytes / sim::size_of(stored.dtype);
        if (has_no_element(stored.shape)) {
            return;
        }
        std::uint64_t last = stored.first_element;
        std::uint64_t count = 1;
        bool inside = last < elements;
        for (std::size_t dim = 0; dim < stored.shape.size() && inside; ++dim) {
            const auto steps = static_cast<std::uint64_t>(stored.shape[dim] - 1);
            const auto stride = static_cast<std::uint64_t>(stored.strides[dim]);
            inside = steps == 0 || stride <= (elements - 1 - last) / steps;
            last += inside ? steps * stride : 0;
            // Elements that share a place would let a small file unfold to a huge tensor.
            inside = inside && steps < elements / count;
            count *= inside ? steps + 1 : 1;
        }
        if (!inside) {
            fail(node, fmt::format("a tensor {} from element {} on in a storage of {} elements",
                                   optim::to_string(stored.shape), stored.first_element, elements));
        }
    }

  private:
    ZipArchive& archive_;
    std::uint64_t offset_;
    std::uint64_t budget_;
};

}  // namespace

StoredTensor read_stored_tensor(ZipArchive& archive) {
    check_byte_order(archive);
    const ItemPickle pickle = read_item_pickle(archive);
    return ItemDecoder(archive, pickle).tensor(pickle.graph.root);
}

optim::Value read_stored_value(ZipArchive& archive) {
    check_byte_order(archive);
    const ItemPickle pickle = read_item_pickle(archive);
    return ItemDecoder(archive, pickle).value(pickle.graph.root);
}

bool is_row_major(const StoredTensor& tensor) {
    if (has_no_element(tensor.shape)) {
        return true;
    }
    std::int64_t expected = 1;
    for (std::size_t dim = tensor.shape.size(); dim-- > 0;) {
        if (tensor.shape[dim] != 1 && tensor.strides[dim] != expected) {
            return false;
        }
        expected *= tensor.shape[dim];
    }
    return true;
}

}  // namespace swaplab::harness
