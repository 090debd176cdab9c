#include "swaplab/optim/value.hpp"

#include "swaplab/sim/mutant.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

namespace swaplab::optim {
namespace {

bool same_items(const std::vector<Value>& a, const std::vector<Value>& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), same_value);
}

bool same_item(const std::pair<Value, Value>& a, const std::pair<Value, Value>& b) {
    return same_value(a.first, b.first) && same_value(a.second, b.second);
}

/// Python's rule: the order counts between ordered dicts only.
bool same_dict(const Dict& a, const Dict& b) {
    if (a.ordered_dict != b.ordered_dict || a.items.size() != b.items.size()) {
        return false;
    }
    if (a.ordered_dict) {
        return std::equal(a.items.begin(), a.items.end(), b.items.begin(), same_item);
    }
    return std::is_permutation(a.items.begin(), a.items.end(), b.items.begin(), same_item);
}

bool same_tensor(const Tensor& a, const Tensor& b) {
    if (a.defined() != b.defined()) {
        return false;
    }
    return !a.defined() || (a.dtype() == b.dtype() && a.global_shape() == b.global_shape() &&
                            a.to_bytes() == b.to_bytes());
}

struct SameContent {
    bool operator()(double a, double b) const {
        return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b) ||
               (std::isnan(a) && std::isnan(b));
    }
    bool operator()(const List& a, const List& b) const { return same_items(a.items, b.items); }
    bool operator()(const Tuple& a, const Tuple& b) const { return same_items(a.items, b.items); }
    bool operator()(const Dict& a, const Dict& b) const { return same_dict(a, b); }
    bool operator()(const Tensor& a, const Tensor& b) const { return same_tensor(a, b); }
    template <class T>
    bool operator()(const T& a, const T& b) const {
        return a == b;
    }
    template <class A, class B>
    bool operator()(const A&, const B&) const {
        return false;
    }
};

struct KindName {
    std::string_view operator()(None) const { return "None"; }
    std::string_view operator()(bool) const { return "bool"; }
    std::string_view operator()(std::int64_t) const { return "int"; }
    std::string_view operator()(const BigInt&) const { return "int"; }
    std::string_view operator()(double) const { return "float"; }
    std::string_view operator()(const std::string&) const { return "str"; }
    std::string_view operator()(const PyBytes&) const { return "bytes"; }
    std::string_view operator()(const List&) const { return "list"; }
    std::string_view operator()(const Tuple&) const { return "tuple"; }
    std::string_view operator()(const Dict&) const { return "dict"; }
    std::string_view operator()(const Tensor&) const { return "tensor"; }
    std::string_view operator()(const Opaque&) const { return "object"; }
};

}  // namespace

const Value* Dict::find(std::string_view key) const {
    for (const auto& [name, value] : items) {
        const auto* text = name.get_if<std::string>();
        if (text != nullptr && *text == key) {
            return &value;
        }
    }
    return nullptr;
}

Value* Dict::find(std::string_view key) {
    return const_cast<Value*>(std::as_const(*this).find(key));
}

void Dict::set(std::string_view key, Value value) {
    if (Value* found = find(key)) {
        *found = std::move(value);
        return;
    }
    items.emplace_back(std::string(key), std::move(value));
}

std::string_view kind_of(const Value& value) noexcept {
    return std::visit(KindName{}, value.data());
}

bool same_value(const Value& a, const Value& b) {
    return std::visit(SameContent{}, a.data(), b.data());
}

Value deep_copy(const Value& value) {
    if (const auto* tensor = value.get_if<Tensor>()) {
        const bool copies = tensor->defined() && !SWAPLAB_MUTANT("load.copies_tensors");
        return copies ? Value(tensor->clone_to_host()) : value;
    }
    Value copy = value;
    if (auto* list = copy.get_if<List>()) {
        std::transform(list->items.begin(), list->items.end(), list->items.begin(), deep_copy);
    } else if (auto* tuple = copy.get_if<Tuple>()) {
        std::transform(tuple->items.begin(), tuple->items.end(), tuple->items.begin(), deep_copy);
    } else if (auto* dict = copy.get_if<Dict>()) {
        for (auto& [key, item] : dict->items) {
            item = deep_copy(item);
        }
    }
    return copy;
}

}  // namespace swaplab::optim
