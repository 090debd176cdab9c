// Values against the type of their word.

#include "scenario/language/amount.hpp"
#include "scenario/language/vocabulary.hpp"

#include "swaplab/optim/sharding.hpp"

#include <fmt/format.h>

#include <optional>

namespace swaplab::harness::scenario {
namespace {

using Kind = Node::Kind;

struct Choice {
    std::string word;
    int stage = 1;
};

std::vector<Choice> choices(std::string_view values) {
    std::vector<Choice> out;
    while (!values.empty()) {
        const std::size_t bar = values.find('|');
        std::string_view one = values.substr(0, bar);
        Choice choice;
        if (one.size() > 2 && one[1] == ':') {
            choice.stage = one[0] - '0';
            one.remove_prefix(2);
        }
        choice.word = std::string(one);
        out.push_back(std::move(choice));
        values = bar == std::string_view::npos ? "" : values.substr(bar + 1);
    }
    return out;
}

std::vector<std::string> known(std::string_view values) {
    std::vector<std::string> out;
    for (const Choice& choice : choices(values)) {
        if (choice.stage == 1) {
            out.push_back(choice.word);
        }
    }
    return out;
}

std::vector<std::string> known(const Section& in) {
    std::vector<std::string> out;
    for (const Word& word : in.words) {
        if (word.stage == 1) {
            out.emplace_back(word.name);
        }
    }
    return out;
}

std::string near_text(std::string_view word, const std::vector<std::string>& candidates) {
    const std::string near = nearest(word, candidates);
    return near.empty() ? "" : "; nearest: " + near;
}

/// One value against one word. Member functions report and return nothing.
class ValueCheck {
  public:
    ValueCheck(const Word& word, Diagnostics& diagnostics)
        : word_(word), diagnostics_(diagnostics) {}

    void check(const Node& node) {
        switch (word_.type) {
            case Type::text:
            case Type::reference:
                return text(node);
            case Type::texts:
                return each(node, &ValueCheck::text);
            case Type::word:
                return one_word(node);
            case Type::words:
                return each(node, &ValueCheck::one_word);
            case Type::flag:
                return of_kind(node.is(Kind::boolean), node);
            case Type::count:
                return count(node);
            case Type::ordinal:
                return node.is(Kind::text) ? one_word(node) : count(node);
            case Type::counts:
                return each(node, &ValueCheck::count);
            case Type::number:
                return number(node);
            case Type::numbers:
                return list(node, &ValueCheck::number);
            case Type::betas:
                of_kind(node.is(Kind::list) && node.items.size() == 2, node);
                return list(node, &ValueCheck::number);
            case Type::bytes:
                (void)read_amount(node, AmountOf::bytes, word_.name, diagnostics_);
                return;
            case Type::elements:
                (void)read_amount(node, AmountOf::elements, word_.name, diagnostics_);
                return;
            case Type::figure:
                return figure(node);
            case Type::duration:
                (void)read_duration(node, word_.name, diagnostics_);
                return;
            case Type::shape:
                return list(node, &ValueCheck::size);
            case Type::placements:
                return list(node, &ValueCheck::placement);
            case Type::init:
                if (!node.is_number()) {
                    init(node);
                }
                return;
            case Type::value:
                return value(node);
            case Type::ranks:
                return ranks(node);
            case Type::table:
                return table(node);
            case Type::tables:
                return list(node, &ValueCheck::table);
            case Type::patch:
                return of_kind(node.is(Kind::table), node);
            case Type::free:
                return;
        }
    }

  private:
    using Member = void (ValueCheck::*)(const Node&);

    void of_kind(bool good, const Node& node) {
        if (!good) {
            diagnostics_.error(
                "wrong-type", node.at,
                fmt::format("{} = {} is {}", word_.name, show(node), name_of(node.kind)),
                fmt::format("expected {}", expected_text(word_)));
        }
    }

    void each(const Node& node, Member check_one) {
        if (!node.is(Kind::list)) {
            return (this->*check_one)(node);
        }
        list(node, check_one);
    }

    void list(const Node& node, Member check_one) {
        if (!node.is(Kind::list)) {
            return of_kind(false, node);
        }
        for (const Node& item : node.items) {
            (this->*check_one)(item);
        }
    }

    void text(const Node& node) {
        if (node.is(Kind::text) && node.text.empty()) {
            diagnostics_.error("bad-value", node.at, fmt::format("{} is empty", word_.name),
                               fmt::format("expected {}", expected_text(word_)));
            return;
        }
        of_kind(node.is(Kind::text), node);
    }

    void number(const Node& node) { of_kind(node.is_number(), node); }

    void count(const Node& node) {
        constexpr std::int64_t largest = 1'000'000'000;
        if (node.is(Kind::integer) && (node.integer < 0 || node.integer > largest)) {
            diagnostics_.error("bad-value", node.at,
                               fmt::format("{} = {}: a count is between 0 and {}", word_.name,
                                           node.integer, largest));
            return;
        }
        of_kind(node.is(Kind::integer), node);
    }

    void size(const Node& node) { count(node); }

    void placement(const Node& node) {
        if (!node.is(Kind::text)) {
            return of_kind(false, node);
        }
        if (!optim::placement_from_text(node.text)) {
            diagnostics_.error("unknown-value", node.at,
                               fmt::format("{}: no placement \"{}\"", word_.name, node.text),
                               "Replicate(), Shard(DIM), _StridedShard(DIM, sf=N)");
        }
    }

    void one_word(const Node& node) {
        if (!node.is(Kind::text)) {
            return of_kind(false, node);
        }
        for (const Choice& choice : choices(word_.values)) {
            if (choice.word == node.text) {
                if (choice.stage > 1) {
                    later(node.at, fmt::format("{} = \"{}\"", word_.name, node.text), choice.stage);
                }
                return;
            }
        }
        unknown_value(node);
    }

    void unknown_value(const Node& node) {
        const std::vector<std::string> words = known(word_.values);
        diagnostics_.error(
            "unknown-value", node.at,
            fmt::format("{} = {}{}", word_.name, show(node), near_text(node.text, words)),
            fmt::format("{} is one of {}", word_.name, join(words)));
    }

    void later(Position at, const std::string& what, int stage) {
        diagnostics_.error("later-stage", at,
                           fmt::format("{} is a word of a later stage ({})", what, stage),
                           "this version does not know it yet");
    }

    void init(const Node& node) {
        if (node.is(Kind::text) && node.text == "seeded") {
            return;
        }
        if (node.is(Kind::text) && node.text == "per_rank") {
            return later(node.at, "init = \"per_rank\"", 2);
        }
        of_kind(false, node);
    }

    void value(const Node& node) { of_kind(!node.is(Kind::list) && !node.is(Kind::date), node); }

    void ranks(const Node& node) {
        if (node.is(Kind::text)) {
            return one_word(node);
        }
        each(node, &ValueCheck::count);
    }

    void figure(const Node& node) {
        if (node.is(Kind::table)) {
            return check_section(node, section("relation"), diagnostics_);
        }
        // Bytes or a count: which one is known where the subject is.
        of_kind(node.is(Kind::integer) || node.is(Kind::text) || node.is(Kind::list), node);
    }

    void table(const Node& node) {
        if (!node.is(Kind::table)) {
            return of_kind(false, node);
        }
        check_section(node, section(word_.values), diagnostics_);
    }

    const Word& word_;
    Diagnostics& diagnostics_;
};

}  // namespace

std::string expected_text(const Word& word) {
    switch (word.type) {
        case Type::text:
            return "a text";
        case Type::texts:
            return "a text or a list of texts";
        case Type::word:
            return "one of " + join(known(word.values));
        case Type::words:
            return "one or several of " + join(known(word.values));
        case Type::flag:
            return "true or false";
        case Type::count:
            return "a whole number";
        case Type::ordinal:
            return fmt::format("a whole number or \"{}\"", word.values);
        case Type::counts:
            return "a whole number or a list of them";
        case Type::number:
            return "a number";
        case Type::numbers:
            return "a list of numbers";
        case Type::betas:
            return "two numbers, [0.9, 0.999]";
        case Type::bytes:
            return "bytes with a unit, \"64 KiB\"";
        case Type::elements:
            return "elements, \"1024 elements\"";
        case Type::figure:
            return "an amount, or { at_most = .. }";
        case Type::duration:
            return "a time, \"5 s\"";
        case Type::shape:
            return "a list of sizes, [12, 2]";
        case Type::placements:
            return "a list of placements, [\"Shard(0)\"]";
        case Type::init:
            return "\"seeded\" or a number";
        case Type::value:
            return "a value or { NAME = value }";
        case Type::reference:
            return "before, start, a label, a save, uninterrupted, adamw";
        case Type::ranks: {
            const auto words = known(word.values);
            return words.empty() ? "a list of ranks" : join(words) + " or a list of ranks";
        }
        case Type::table:
            return "a table";
        case Type::tables:
            return "a list of tables";
        case Type::patch:
            return "a table of changes, { world.size = 2 }";
        case Type::free:
            return "see docs/scenarios.md";
    }
    return "";
}

void check_section(const Node& table, const Section& in, Diagnostics& diagnostics) {
    for (const NodeEntry& entry : table.entries) {
        const Word* word = find_word(in, entry.key);
        if (word == nullptr) {
            const std::vector<std::string> words = known(in);
            diagnostics.error(
                "unknown-key", entry.at,
                fmt::format("\"{}\" in [{}]{}", entry.key, in.name, near_text(entry.key, words)),
                fmt::format("[{}] knows {}", in.name, words.empty() ? "no keys" : join(words)));
        } else if (word->stage > 1) {
            diagnostics.error("later-stage", entry.at,
                              fmt::format("\"{}\" in [{}] is a word of a later stage ({})",
                                          entry.key, in.name, word->stage),
                              "this version does not know it yet");
        } else {
            ValueCheck(*word, diagnostics).check(entry.value);
        }
    }
}

}  // namespace swaplab::harness::scenario
