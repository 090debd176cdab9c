#pragma once

/// A scenario file as a plain tree: TOML without its library, every value with its place.

#include "scenario/language/diagnostic.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace swaplab::harness::scenario {

struct NodeEntry;

/// One TOML value. Tables keep the order of the file.
struct Node {
    enum class Kind : std::uint8_t { text, integer, real, boolean, list, table, date };
    Kind kind = Kind::table;
    Position at;
    std::string text;
    std::int64_t integer = 0;
    double real = 0;
    bool boolean = false;
    std::vector<Node> items;
    std::vector<NodeEntry> entries;

    [[nodiscard]] bool is(Kind wanted) const noexcept { return kind == wanted; }
    [[nodiscard]] bool is_number() const noexcept {
        return kind == Kind::integer || kind == Kind::real;
    }
    /// Of a number.
    [[nodiscard]] double number() const noexcept {
        return kind == Kind::integer ? static_cast<double>(integer) : real;
    }
    [[nodiscard]] const Node* find(std::string_view key) const noexcept;
    [[nodiscard]] Node* find(std::string_view key) noexcept;
    /// Place of a key of this table, or of the table itself.
    [[nodiscard]] Position place_of(std::string_view key) const noexcept;
    /// Content, whatever the place.
    friend bool operator==(const Node& a, const Node& b);
    /// Replaces or appends.
    Node& set(std::string_view key, Node value);
    void erase(std::string_view key);
};

struct NodeEntry {
    std::string key;
    Position at;
    Node value;
};

[[nodiscard]] Node make_text(std::string text, Position at);
[[nodiscard]] Node make_integer(std::int64_t value, Position at);
[[nodiscard]] Node make_table(Position at);

/// As TOML would write it on one line: "64 MiB" in quotes, [1, 2], { a = 3 }.
[[nodiscard]] std::string show(const Node& node);
/// The same without quotes around a text: for names of runs.
[[nodiscard]] std::string show_plain(const Node& node);

/// "text", "a whole number", "a list", ...
[[nodiscard]] std::string_view name_of(Node::Kind kind) noexcept;

/// A value and the keys that lead to it from some table.
struct NodePath {
    std::vector<std::string> keys;
    Position at;
    Node value;

    [[nodiscard]] std::string text() const { return join(keys, "."); }
};

/// Every value of `table` that is no table, with its path. A quoted key "a.b" reads like a.b.
[[nodiscard]] std::vector<NodePath> leaves(const Node& table);

/// Reads TOML. Empty, with one diagnostic (syntax, too-large, not-text), when it cannot be read.
[[nodiscard]] std::optional<Node> read_toml(std::string_view source, Diagnostics& diagnostics);

/// Reads the value of `--set PATH=VALUE`: TOML, or a bare word taken as text.
[[nodiscard]] Node read_toml_value(std::string_view text);

}  // namespace swaplab::harness::scenario
