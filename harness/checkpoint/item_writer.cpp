#include "checkpoint/item_writer.hpp"

#include "checkpoint/pickle_opcode.hpp"
#include "checkpoint/pickle_writer.hpp"
#include "checkpoint/torch_names.hpp"
#include "checkpoint/zip_writer.hpp"

#include "swaplab/sim/error.hpp"

#include <fmt/format.h>

namespace swaplab::harness {
namespace {

using optim::Value;

// What PyTorch's writer puts in front of a serialization id: a hash over the names of an archive's
// records in the order of a std::unordered_set, so a constant of each list of names.
constexpr std::string_view tensor_names_fingerprint = "15728199511854643026";
constexpr std::string_view value_names_fingerprint = "02908468677762923104";

/// Records that follow data.pkl in every archive.
void write_preamble(ZipWriter& zip, std::string_view pickle) {
    zip.record("data.pkl", pickle);
    zip.record(".format_version", "1");
    zip.record(".storage_alignment", "64");
    zip.record("byteorder", "little");
}

void end_tuple(PickleWriter& pickle, std::size_t size) {
    constexpr std::uint8_t short_forms[] = {opcode::empty_tuple, opcode::tuple1, opcode::tuple2,
                                            opcode::tuple3};
    pickle.op(size < 4 ? short_forms[size] : opcode::tuple);
    if (size > 0) {
        pickle.memoize();
    }
}

void write_shape(PickleWriter& pickle, const optim::Shape& shape) {
    if (shape.size() > 3) {
        pickle.op(opcode::mark);
    }
    for (const std::int64_t size : shape) {
        pickle.integer(size);
    }
    end_tuple(pickle, shape.size());
}

/// Strides of a row-major tensor as PyTorch computes them: sizes of 0 count as 1.
optim::Shape row_major_strides(const optim::Shape& shape) {
    optim::Shape strides(shape.size());
    std::int64_t stride = 1;
    for (std::size_t dim = shape.size(); dim-- > 0;) {
        strides[dim] = stride;
        stride *= std::max<std::int64_t>(shape[dim], 1);
    }
    return strides;
}

/// Dtypes without a storage class of their own are bytes plus a dtype.
std::string tensor_pickle(const optim::Tensor& tensor) {
    const std::string_view storage_class = storage_class_of(tensor.dtype());
    const bool is_typed = !storage_class.empty();
    PickleWriter pickle(2);
    pickle.global("torch._utils", is_typed ? "_rebuild_tensor_v2" : "_rebuild_tensor_v3");
    pickle.op(opcode::mark);
    pickle.op(opcode::mark);
    pickle.text("storage");
    if (is_typed) {
        pickle.global("torch", storage_class);
    } else {
        pickle.global("torch.storage", "UntypedStorage");
    }
    pickle.text("0");
    pickle.text("cpu");
    pickle.integer(is_typed ? tensor.local_numel()
                            : static_cast<std::int64_t>(tensor.local_bytes()));
    pickle.op(opcode::tuple);
    pickle.memoize();
    pickle.op(opcode::binpersid);
    pickle.integer(0);
    write_shape(pickle, tensor.local_shape());
    write_shape(pickle, row_major_strides(tensor.local_shape()));
    pickle.boolean(false);
    pickle.global("collections", "OrderedDict");
    pickle.op(opcode::empty_tuple);
    pickle.op(opcode::reduce);
    pickle.memoize();
    if (!is_typed) {
        pickle.global("torch", sim::name_of(tensor.dtype()));
    }
    pickle.op(opcode::tuple);
    pickle.memoize();
    pickle.op(opcode::reduce);
    pickle.memoize();
    return std::move(pickle).finish();
}

void write(PickleWriter& pickle, const Value& value);

/// One item is appended alone, more in batches of at most 1000 between mark and `many`.
template <class Items, class WriteOne>
void write_batches(PickleWriter& pickle, const Items& items, std::uint8_t one, std::uint8_t many,
                   WriteOne write_one) {
    constexpr std::size_t batch = 1000;
    for (std::size_t begin = 0; begin < items.size(); begin += batch) {
        const std::size_t end = std::min(items.size(), begin + batch);
        if (end - begin > 1) {
            pickle.op(opcode::mark);
        }
        for (std::size_t i = begin; i < end; ++i) {
            write_one(items[i]);
        }
        pickle.op(end - begin > 1 ? many : one);
    }
}

void write_tuple(PickleWriter& pickle, const optim::Tuple& tuple) {
    if (tuple.items.size() > 3) {
        pickle.op(opcode::mark);
    }
    for (const Value& item : tuple.items) {
        write(pickle, item);
    }
    end_tuple(pickle, tuple.items.size());
}

void write_list(PickleWriter& pickle, const optim::List& list) {
    pickle.op(opcode::empty_list);
    pickle.memoize();
    write_batches(pickle, list.items, opcode::append, opcode::appends,
                  [&](const Value& item) { write(pickle, item); });
}

void write_dict(PickleWriter& pickle, const optim::Dict& dict) {
    if (dict.ordered_dict) {
        pickle.global("collections", "OrderedDict");
        pickle.op(opcode::empty_tuple);
        pickle.op(opcode::reduce);
    } else {
        pickle.op(opcode::empty_dict);
    }
    pickle.memoize();
    write_batches(pickle, dict.items, opcode::setitem, opcode::setitems, [&](const auto& item) {
        write(pickle, item.first);
        write(pickle, item.second);
    });
}

void write(PickleWriter& pickle, const Value& value) {
    if (value.is_none()) {
        pickle.none();
    } else if (const auto* flag = value.get_if<bool>()) {
        pickle.boolean(*flag);
    } else if (const auto* integer = value.get_if<std::int64_t>()) {
        pickle.integer(*integer);
    } else if (const auto* big = value.get_if<optim::BigInt>()) {
        pickle.big_integer(big->decimal);
    } else if (const auto* number = value.get_if<double>()) {
        pickle.floating(*number);
    } else if (const auto* text = value.get_if<std::string>()) {
        pickle.text(*text);
    } else if (const auto* bytes = value.get_if<optim::PyBytes>()) {
        pickle.bytes(bytes->data);
    } else if (const auto* tuple = value.get_if<optim::Tuple>()) {
        write_tuple(pickle, *tuple);
    } else if (const auto* list = value.get_if<optim::List>()) {
        write_list(pickle, *list);
    } else if (const auto* dict = value.get_if<optim::Dict>()) {
        write_dict(pickle, *dict);
    } else {
        throw sim::ArgumentError(
            fmt::format("a value that is saved whole cannot hold {}: put tensors into dicts or "
                        "lists, leave objects of other classes out",
                        optim::repr(value)),
            {{"found", std::string(optim::kind_of(value))}});
    }
}

}  // namespace

std::string pickle_of(const Value& value) {
    PickleWriter pickle(2);
    write(pickle, value);
    return std::move(pickle).finish();
}

std::uint64_t write_tensor_item(BlockWriter& out, const optim::Tensor& tensor) {
    const std::uint64_t begin = out.position();
    ZipWriter zip(out);
    write_preamble(zip, tensor_pickle(tensor));
    const std::uint64_t bytes = tensor.local_bytes();
    zip.begin("data/0", bytes);
    for (std::uint64_t done = 0; done < bytes;) {
        const std::span<std::byte> room = out.room(bytes - done);
        tensor.storage().read(done, room);
        zip.payload(room);
        out.commit(room.size());
        done += room.size();
    }
    zip.end();
    zip.finish(tensor_names_fingerprint);
    return out.position() - begin;
}

std::uint64_t write_value_item(BlockWriter& out, const Value& value) {
    const std::uint64_t begin = out.position();
    const std::string pickle = pickle_of(value);
    ZipWriter zip(out);
    write_preamble(zip, pickle);
    zip.finish(value_names_fingerprint);
    return out.position() - begin;
}

}  // namespace swaplab::harness
