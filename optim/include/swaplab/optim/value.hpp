#pragma once

/// The Python values that state dicts and checkpoints hold.

#include "swaplab/optim/tensor.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace swaplab::optim {

class Value;

struct None {
    friend bool operator==(None, None) = default;
};
/// An integer beyond int64, as decimal digits with an optional '-'.
struct BigInt {
    std::string decimal;
    friend bool operator==(const BigInt&, const BigInt&) = default;
};
struct PyBytes {
    std::string data;
    friend bool operator==(const PyBytes&, const PyBytes&) = default;
};
struct List;
struct Tuple;
struct Dict;
/// An object of a class that is not opened: nothing of it was executed. Refused where it is asked
/// for; counted in a note elsewhere.
struct Opaque {
    std::string class_name;      ///< "decimal.Decimal"
    std::uint64_t position = 0;  ///< byte offset of the class name inside its item
    friend bool operator==(const Opaque&, const Opaque&) = default;
};

struct List {
    std::vector<Value> items;
};
struct Tuple {
    std::vector<Value> items;
};
/// Insertion order is kept, as in Python. Keys are usually strings; ints occur.
struct Dict {
    std::vector<std::pair<Value, Value>> items;
    bool ordered_dict = false;  ///< collections.OrderedDict

    [[nodiscard]] const Value* find(std::string_view key) const;
    [[nodiscard]] Value* find(std::string_view key);
    /// Replaces or appends.
    void set(std::string_view key, Value value);
};

/// One Python value. Compared by same_value(), never by ==: tensors have contents.
class Value {
  public:
    using Data = std::variant<None, bool, std::int64_t, BigInt, double, std::string, PyBytes, List,
                              Tuple, Dict, Tensor, Opaque>;

    Value() = default;
    // Implicit on purpose: a state dict literal reads like one.
    template <class T>
    requires std::is_constructible_v<Data, T&&> &&
        (!std::is_same_v<std::decay_t<T>, Value>)Value(T&& data)
        : data_(std::forward<T>(data)) {}                  // NOLINT(google-explicit-constructor)
    Value(const char* text) : data_(std::string(text)) {}  // NOLINT(google-explicit-constructor)

    [[nodiscard]] const Data& data() const noexcept { return data_; }
    [[nodiscard]] Data& data() noexcept { return data_; }
    template <class T>
    [[nodiscard]] const T* get_if() const noexcept {
        return std::get_if<T>(&data_);
    }
    template <class T>
    [[nodiscard]] T* get_if() noexcept {
        return std::get_if<T>(&data_);
    }
    [[nodiscard]] bool is_none() const noexcept { return get_if<None>() != nullptr; }

  private:
    Data data_;
};

/// Python's name of the kind: "None", "bool", "int", "float", "str", "bytes", "list", "tuple",
/// "dict", "tensor", or "object" for Opaque.
[[nodiscard]] std::string_view kind_of(const Value& value) noexcept;

/// Python's repr for people: 0.01, (0.9, 0.999), ['a', 'b'], tensor float32 [12,2].
[[nodiscard]] std::string repr(const Value& value);

/// Same kind and content; floats by bits (any NaN equals any NaN), tensors by dtype, global shape,
/// and local bytes. The order of keys counts between ordered dicts only.
[[nodiscard]] bool same_value(const Value& a, const Value& b);

/// A copy, in host memory, that shares no tensor with `value`.
[[nodiscard]] Value deep_copy(const Value& value);

}  // namespace swaplab::optim
