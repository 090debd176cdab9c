// The only file that sees the TOML library.

#include "scenario/language/node.hpp"

#include <toml++/toml.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

namespace swaplab::harness::scenario {
namespace {

constexpr std::size_t max_bytes = std::size_t{1} << 18U;
// The library builds one nested table per dot of a key, and takes them down recursively.
constexpr std::ptrdiff_t max_dots = 4000;
constexpr int max_depth = 32;

Position position_of(const toml::source_region& region, std::size_t key_length) {
    return {static_cast<int>(region.begin.line), static_cast<int>(region.begin.column),
            static_cast<int>(std::max<std::size_t>(key_length, 1))};
}

Node convert(const toml::node& source, int depth, Diagnostics& diagnostics);

void convert_table(const toml::table& table, Node& out, int depth, Diagnostics& diagnostics) {
    for (const auto& [key, value] : table) {
        NodeEntry entry;
        entry.key = std::string(key.str());
        entry.at = position_of(key.source(), entry.key.size());
        entry.value = convert(value, depth + 1, diagnostics);
        out.entries.push_back(std::move(entry));
    }
    // The library sorts keys by name; people read errors and steps in file order.
    std::stable_sort(
        out.entries.begin(), out.entries.end(), [](const NodeEntry& a, const NodeEntry& b) {
            return std::pair(a.at.line, a.at.column) < std::pair(b.at.line, b.at.column);
        });
}

void convert_scalar(const toml::node& source, Node& out) {
    if (const auto* text = source.as_string()) {
        out.kind = Node::Kind::text;
        out.text = text->get();
        out.at.length = static_cast<int>(std::min<std::size_t>(out.text.size(), 60)) + 2;
    } else if (const auto* integer = source.as_integer()) {
        out.kind = Node::Kind::integer;
        out.integer = integer->get();
        out.at.length = static_cast<int>(std::to_string(out.integer).size());
    } else if (const auto* real = source.as_floating_point()) {
        out.kind = Node::Kind::real;
        out.real = real->get();
    } else if (const auto* boolean = source.as_boolean()) {
        out.kind = Node::Kind::boolean;
        out.boolean = boolean->get();
        out.at.length = out.boolean ? 4 : 5;
    } else {
        out.kind = Node::Kind::date;
        out.text = "a date or time";
    }
}

Node convert(const toml::node& source, int depth, Diagnostics& diagnostics) {
    Node out;
    out.at = position_of(source.source(), 1);
    if (depth > max_depth) {
        diagnostics.error("too-deep", out.at, "nested more than 32 levels deep");
        return out;
    }
    if (const auto* table = source.as_table()) {
        convert_table(*table, out, depth, diagnostics);
    } else if (const auto* list = source.as_array()) {
        out.kind = Node::Kind::list;
        for (const toml::node& item : *list) {
            out.items.push_back(convert(item, depth + 1, diagnostics));
        }
    } else {
        convert_scalar(source, out);
    }
    return out;
}

}  // namespace

std::optional<Node> read_toml(std::string_view source, Diagnostics& diagnostics) {
    if (source.size() > max_bytes) {
        diagnostics.error("too-large", {1, 1}, "a scenario file has at most 256 KiB and 60 lines");
        return std::nullopt;
    }
    if (std::count(source.begin(), source.end(), '.') > max_dots) {
        diagnostics.error("too-large", {1, 1}, "a scenario file has at most 4,000 dots");
        return std::nullopt;
    }
    try {
        const toml::table table = toml::parse(source);
        Node out = convert(table, 0, diagnostics);
        out.at = {1, 1, 1};  // what is missing in the whole file is missing from its first line on
        return out;
    } catch (const toml::parse_error& error) {
        diagnostics.error("syntax", position_of(error.source(), 1),
                          std::string(error.description()));
        return std::nullopt;
    }
}

namespace {

/// A value from the command line stands at no line of the file.
void forget_places(Node& node) {
    node.at = {};
    for (Node& item : node.items) {
        forget_places(item);
    }
    for (NodeEntry& entry : node.entries) {
        entry.at = {};
        forget_places(entry.value);
    }
}

}  // namespace

Node read_toml_value(std::string_view text) {
    Diagnostics ignored;
    if (text.find('\n') == std::string_view::npos) {
        if (auto parsed = read_toml("value = " + std::string(text), ignored)) {
            if (parsed->entries.size() == 1) {
                forget_places(*parsed);
                return std::move(parsed->entries.front().value);
            }
        }
    }
    return make_text(std::string(text), {});
}

}  // namespace swaplab::harness::scenario
