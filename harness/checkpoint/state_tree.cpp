#include "checkpoint/state_tree.hpp"

#include "swaplab/sim/error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
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

class Flattener {
  public:
    std::vector<Leaf> run(const Value& tree) {
        if (tree.get_if<Dict>() == nullptr) {
            throw sim::ArgumentError(
                fmt::format("a state dict must be a dict, not {}", optim::kind_of(tree)),
                {{"operation", "save_checkpoint"},
                 {"expected", "dict"},
                 {"found", std::string(optim::kind_of(tree))}});
        }
        visit(tree);
        return std::move(leaves_);
    }

  private:
    void visit(const Value& value) {
        if (const auto* dict = value.get_if<Dict>()) {
            for (const auto& item : dict->items) {
                path_.emplace_back(text_of_part(item.first));
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
            key += (key.empty() && &part == &path_.front() ? "" : ".") + text_of_part(part);
        }
        if (!keys_.insert(key).second) {
            throw sim::ArgumentError(
                fmt::format("two entries of the state dict have the joined name {}; rename one",
                            key),
                {{"operation", "save_checkpoint"},
                 {"key", key},
                 {"expected", "once"},
                 {"found", "twice"}});
        }
        leaves_.push_back({std::move(key), path_, value});
    }

    std::vector<Value> path_;
    std::set<std::string> keys_;
    std::vector<Leaf> leaves_;
};

}  // namespace

std::string text_of_part(const Value& part) {
    const auto* text = part.get_if<std::string>();
    return text != nullptr ? *text : optim::repr(part);
}

std::vector<Leaf> flatten(const Value& tree) {
    return Flattener().run(tree);
}

/// A place of the tree: nothing yet, a leaf, or a container. Dicts find their children by an index:
/// a dict of all parameters has very many.
struct TreeBuilder::Node {
    enum class Kind : std::uint8_t { none, leaf, dict, list };
    Kind kind = Kind::none;
    Value value;                                  ///< of a leaf
    std::vector<std::unique_ptr<Node>> children;  ///< of a list: null where nothing was put
    std::vector<std::string> names;               ///< of a dict's children
    std::map<std::string, std::size_t> place_of;  ///< of a dict's children

    /// The child that `part` names, made when it is new; nullptr when this is no container for it.
    Node* child(const Value& part, std::size_t most_items) {
        const auto* number = part.get_if<std::int64_t>();
        const auto* name = part.get_if<std::string>();
        const Kind needed = number != nullptr ? Kind::list : Kind::dict;
        if (kind == Kind::none) {
            kind = needed;
        }
        if (kind != needed || (number == nullptr && name == nullptr)) {
            return nullptr;
        }
        return number != nullptr ? item(*number, most_items) : item(*name);
    }

    Node* item(std::int64_t number, std::size_t most_items) {
        const auto index = static_cast<std::size_t>(number);
        if (number < 0 || index >= most_items) {
            return nullptr;
        }
        if (index >= children.size()) {
            children.resize(index + 1);
        }
        if (!children[index]) {
            children[index] = std::make_unique<Node>();
        }
        return children[index].get();
    }

    Node* item(const std::string& name) {
        const auto [place, is_new] = place_of.try_emplace(name, children.size());
        if (is_new) {
            names.push_back(name);
            children.push_back(std::make_unique<Node>());
        }
        return children[place->second].get();
    }

    Value take() {
        if (kind == Kind::dict) {
            Dict dict;
            for (std::size_t i = 0; i < children.size(); ++i) {
                dict.items.emplace_back(std::move(names[i]), children[i]->take());
            }
            return dict;
        }
        if (kind == Kind::list) {
            List list;
            for (const std::unique_ptr<Node>& child : children) {
                list.items.push_back(child ? child->take() : Value(optim::None{}));
            }
            return list;
        }
        return std::move(value);
    }
};

TreeBuilder::TreeBuilder(std::size_t most_items)
    : most_items_(most_items), root_(std::make_unique<Node>()) {
    root_->kind = Node::Kind::dict;
}

TreeBuilder::~TreeBuilder() = default;

bool TreeBuilder::put(const std::vector<Value>& path, Value value) {
    Node* place = root_.get();
    for (const Value& part : path) {
        place = place->child(part, most_items_);
        if (place == nullptr) {
            return false;
        }
    }
    if (place->kind != Node::Kind::none) {
        return false;
    }
    place->kind = Node::Kind::leaf;
    place->value = std::move(value);
    return true;
}

Value TreeBuilder::take() && {
    return root_->take();
}

}  // namespace swaplab::harness
