#include "scenario/language/node.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

namespace swaplab::harness::scenario {

const Node* Node::find(std::string_view key) const noexcept {
    const auto found = std::find_if(entries.begin(), entries.end(),
                                    [&](const NodeEntry& entry) { return entry.key == key; });
    return found == entries.end() ? nullptr : &found->value;
}

Node* Node::find(std::string_view key) noexcept {
    return const_cast<Node*>(std::as_const(*this).find(key));
}

Position Node::place_of(std::string_view key) const noexcept {
    for (const NodeEntry& entry : entries) {
        if (entry.key == key) {
            return entry.at;
        }
    }
    return at;
}

Node& Node::set(std::string_view key, Node value) {
    if (Node* old = find(key)) {
        *old = std::move(value);
        return *old;
    }
    const Position place = value.at;
    entries.push_back({std::string(key), place, std::move(value)});
    return entries.back().value;
}

void Node::erase(std::string_view key) {
    entries.erase(std::remove_if(entries.begin(), entries.end(),
                                 [&](const NodeEntry& entry) { return entry.key == key; }),
                  entries.end());
}

Node make_text(std::string text, Position at) {
    Node node;
    node.kind = Node::Kind::text;
    node.text = std::move(text);
    node.at = at;
    return node;
}

Node make_integer(std::int64_t value, Position at) {
    Node node;
    node.kind = Node::Kind::integer;
    node.integer = value;
    node.at = at;
    return node;
}

Node make_table(Position at) {
    Node node;
    node.at = at;
    return node;
}

bool operator==(const Node& a, const Node& b) {
    if (a.kind != b.kind || a.text != b.text || a.integer != b.integer || a.boolean != b.boolean ||
        !(a.real == b.real) || a.items.size() != b.items.size() ||
        a.entries.size() != b.entries.size()) {
        return false;
    }
    return std::equal(a.items.begin(), a.items.end(), b.items.begin()) &&
           std::all_of(a.entries.begin(), a.entries.end(), [&](const NodeEntry& entry) {
               const Node* other = b.find(entry.key);
               return other != nullptr && entry.value == *other;
           });
}

std::string show(const Node& node) {
    std::vector<std::string> parts;
    switch (node.kind) {
        case Node::Kind::text:
            return fmt::format("\"{}\"", node.text);
        case Node::Kind::integer:
            return fmt::format("{}", node.integer);
        case Node::Kind::real:
            return fmt::format("{}", node.real);
        case Node::Kind::boolean:
            return node.boolean ? "true" : "false";
        case Node::Kind::date:
            return node.text;
        case Node::Kind::list:
            for (const Node& item : node.items) {
                parts.push_back(show(item));
            }
            return "[" + join(parts) + "]";
        case Node::Kind::table:
            for (const NodeEntry& entry : node.entries) {
                parts.push_back(entry.key + " = " + show(entry.value));
            }
            return parts.empty() ? "{}" : "{ " + join(parts) + " }";
    }
    return "";
}

std::string show_plain(const Node& node) {
    return node.is(Node::Kind::text) ? node.text : show(node);
}

std::string_view name_of(Node::Kind kind) noexcept {
    constexpr std::array<std::string_view, 7> names{
        "text",    "a whole number", "a decimal number", "true or false", "a list",
        "a table", "a date"};
    return names[static_cast<std::size_t>(kind)];
}

namespace {

void collect_leaves(const Node& table, const std::vector<std::string>& prefix,
                    std::vector<NodePath>& out) {
    for (const NodeEntry& entry : table.entries) {
        std::vector<std::string> keys = prefix;
        std::string_view rest = entry.key;
        while (true) {
            const std::size_t dot = rest.find('.');
            keys.emplace_back(rest.substr(0, dot));
            if (dot == std::string_view::npos) {
                break;
            }
            rest.remove_prefix(dot + 1);
        }
        if (entry.value.is(Node::Kind::table)) {
            collect_leaves(entry.value, keys, out);
        } else {
            out.push_back({std::move(keys), entry.at, entry.value});
        }
    }
}

}  // namespace

std::vector<NodePath> leaves(const Node& table) {
    std::vector<NodePath> out;
    collect_leaves(table, {}, out);
    return out;
}

}  // namespace swaplab::harness::scenario
