#include "checkpoint/state_tree.hpp"

#include "swaplab/sim/error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace swaplab::harness {
namespace {

using optim::Dict;
using optim::List;
using optim::Value;

/// False: the list is one leaf.
bool is_descended(const List& list) {
    return std::any_of(list.items.begin(), list.items.end(), [](const Value& item) {
        const auto* inner = item.get_if<List>();
        return item.get_if<optim::Tensor>() != nullptr || item.get_if<Dict>() != nullptr ||
               (inner != nullptr && is_descended(*inner));
    });
}

std::string text_of(const Value& part) {
    if (const auto* text = part.get_if<std::string>()) {
        return *text;
    }
    const auto* number = part.get_if<std::int64_t>();
    return number == nullptr ? optim::repr(part) : std::to_string(*number);
}

class Flattener {
  public:
    std::vector<Leaf> run(const Value& tree) {
        if (tree.get_if<Dict>() == nullptr) {
            throw sim::ArgumentError(
                fmt::format("a state dict must be a dict, not {}", optim::kind_of(tree)));
        }
        visit(tree);
        return std::move(leaves_);
    }

  private:
    void visit(const Value& value) {
        if (const auto* dict = value.get_if<Dict>()) {
            for (const auto& item : dict->items) {
                path_.emplace_back(text_of(item.first));
                visit(item.second);
                path_.pop_back();
            }
            return;
        }
        const auto* list = value.get_if<List>();
        if (list != nullptr && is_descended(*list)) {
            for (std::size_t i = 0; i < list->items.size(); ++i) {
                path_.emplace_back(static_cast<std::int64_t>(i));
                visit(list->items[i]);
                path_.pop_back();
            }
            return;
        }
        add(value);
    }

    void add(const Value& value) {
        std::string key;
        for (const Value& part : path_) {
            key += (key.empty() && &part == &path_.front() ? "" : ".") + text_of(part);
        }
        if (!keys_.insert(key).second) {
            throw sim::ArgumentError(
                fmt::format("two entries of the state dict have the joined name {}; rename one",
                            key),
                {{"key", key}});
        }
        leaves_.push_back({std::move(key), path_, value});
    }

    std::vector<Value> path_;
    std::set<std::string> keys_;
    std::vector<Leaf> leaves_;
};

/// The child that `part` names, made (as None) when it is new; nullptr when `parent` is no
/// container for it.
Value* child_of(Value& parent, const Value& part, std::size_t most_items) {
    if (const auto* number = part.get_if<std::int64_t>()) {
        auto* list = parent.get_if<List>();
        const auto index = static_cast<std::size_t>(*number);
        if (list == nullptr || *number < 0 || index >= most_items) {
            return nullptr;
        }
        if (index >= list->items.size()) {
            list->items.resize(index + 1);
        }
        return &list->items[index];
    }
    auto* dict = parent.get_if<Dict>();
    const auto* name = part.get_if<std::string>();
    if (dict == nullptr || name == nullptr) {
        return nullptr;
    }
    if (Value* found = dict->find(*name)) {
        return found;
    }
    dict->items.emplace_back(*name, optim::None{});
    return &dict->items.back().second;
}

}  // namespace

std::vector<Leaf> flatten(const Value& tree) {
    return Flattener().run(tree);
}

bool TreeBuilder::put(const std::vector<Value>& path, Value value) {
    Value* place = &root_;
    for (std::size_t i = 0; i < path.size(); ++i) {
        place = child_of(*place, path[i], most_items_);
        if (place == nullptr) {
            return false;
        }
        if (i + 1 < path.size() && place->is_none()) {
            const bool is_list = path[i + 1].get_if<std::int64_t>() != nullptr;
            *place = is_list ? Value(List{}) : Value(Dict{});
        }
    }
    if (!place->is_none()) {
        return false;
    }
    *place = std::move(value);
    return true;
}

}  // namespace swaplab::harness
