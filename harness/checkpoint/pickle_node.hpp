#pragma once

/// What a pickle describes, before anything is made of it. Nothing is ever executed: a call is a
/// node that names its callable and its arguments.

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace swaplab::harness {

struct PickleNode;
using NodeRef = const PickleNode*;

struct PickleNode {
    enum class Kind : std::uint8_t {
        none,
        boolean,
        integer,
        big_integer,
        floating,
        text,
        bytes,
        tuple,
        list,
        dict,          ///< items: key, value, key, value, ...
        ordered_dict,  ///< the same
        global,        ///< text: "module name", both as written
        object,        ///< items: class or callable, arguments tuple[, state]
        storage,       ///< items: the persistent id's elements
        foreign,       ///< of a class that is not opened; text: "module.name"
    };
    Kind kind = Kind::none;
    std::uint64_t position = 0;  ///< byte offset in the pickle; of the name for global and foreign
    std::variant<std::int64_t, double, std::string, std::vector<NodeRef>> data;

    [[nodiscard]] std::int64_t integer() const { return std::get<std::int64_t>(data); }
    [[nodiscard]] double floating() const { return std::get<double>(data); }
    [[nodiscard]] const std::string& text() const { return std::get<std::string>(data); }
    [[nodiscard]] const std::vector<NodeRef>& items() const {
        return std::get<std::vector<NodeRef>>(data);
    }
    [[nodiscard]] std::vector<NodeRef>& items() { return std::get<std::vector<NodeRef>>(data); }
    [[nodiscard]] bool is_global(std::string_view full_name) const {
        return kind == Kind::global && text() == full_name;
    }
    [[nodiscard]] bool is_object(std::string_view full_name) const {
        return kind == Kind::object && items()[0]->is_global(full_name);
    }
};

/// A parsed pickle; nodes point at each other and may form cycles.
struct PickleGraph {
    std::deque<PickleNode> nodes;
    NodeRef root = nullptr;
};

}  // namespace swaplab::harness
