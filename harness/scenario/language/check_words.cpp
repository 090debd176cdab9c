// Where words may stand: steps, cases, keys that are required.

#include "scenario/language/vocabulary.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace swaplab::harness::scenario {
namespace {

using Kind = Node::Kind;

void check_expect(const Node& node, Diagnostics& diagnostics) {
    if (node.is(Kind::list)) {
        for (const Node& item : node.items) {
            check_expect(item, diagnostics);
        }
        return;
    }
    if (!node.is(Kind::table)) {
        diagnostics.error("wrong-type", node.at, "expect is " + std::string(name_of(node.kind)),
                          "expected subjects and what must hold, { params.same_as = \"before\" }");
        return;
    }
    check_section(node, section("expect"), diagnostics);
}

void check_step(const Node& step, Diagnostics& diagnostics) {
    if (!step.is(Kind::table)) {
        diagnostics.error("wrong-type", step.at, "a step is a table, { train = 3 }");
        return;
    }
    check_section(step, section("step"), diagnostics);
    std::vector<std::string> found;
    for (const NodeEntry& entry : step.entries) {
        if (std::find(verbs().begin(), verbs().end(), entry.key) != verbs().end()) {
            found.push_back(entry.key);
            if (found.size() == 2) {
                diagnostics.error("two-verbs", entry.at,
                                  fmt::format("a step with both {}", join(found, " and ")),
                                  "one verb per step");
            }
        }
        if (entry.key == "expect") {
            check_expect(entry.value, diagnostics);
        }
    }
    // A word of a later stage was refused as such already.
    const bool has_later =
        std::any_of(step.entries.begin(), step.entries.end(), [](const NodeEntry& entry) {
            const Word* word = find_word(section("step"), entry.key);
            return word == nullptr || word->stage > 1;
        });
    if (found.empty() && !has_later) {
        diagnostics.error("no-verb", step.at, "a step without a verb",
                          "a step has one of " + join(verbs()));
    }
}

void refuse_twins(const Node& table, const char* key, const char* says, Diagnostics& diagnostics) {
    const Node* list = table.find(key);
    const std::vector<Node> none;
    const std::vector<Node>& items = list != nullptr ? list->items : none;
    for (std::size_t i = 0; i < items.size(); ++i) {
        if (std::find(items.begin(), items.begin() + static_cast<std::ptrdiff_t>(i), items[i]) !=
            items.begin() + static_cast<std::ptrdiff_t>(i)) {
            diagnostics.error("bad-value", items[i].at,
                              fmt::format("{} {} {} twice", key, says, show(items[i])));
        }
    }
}

void check_case(const Node& node, Diagnostics& diagnostics) {
    if (!node.is(Kind::table)) {
        diagnostics.error(
            "wrong-type", node.at,
            "a case is a table, { optimizer = \"swap_adamw\", verdict = \"passes\" }");
        return;
    }
    check_section(node, section("case"), diagnostics);
    const auto exactly_one = [&](const char* a, const char* b) {
        if ((node.find(a) == nullptr) == (node.find(b) == nullptr) && !node.find("exec")) {
            diagnostics.error("bad-case", node.at, fmt::format("a case has one of {} and {}", a, b),
                              node.find(a) == nullptr ? "neither is there" : "both are there");
        }
    };
    exactly_one("optimizer", "specimen");
    exactly_one("verdict", "fails");
    refuse_twins(node, "specimen", "lists the defect", diagnostics);
    refuse_twins(node, "fails", "names", diagnostics);
    const Node* fails = node.find("fails");
    if (fails != nullptr && (!fails->is(Kind::list) || fails->items.empty())) {
        diagnostics.error("wrong-type", fails->at, "fails = " + show(*fails),
                          "expected a list of paths, [\"load.runs\"]");
        return;
    }
    for (const Node& item : fails != nullptr ? fails->items : std::vector<Node>{}) {
        const bool good =
            item.is(Kind::text) ||
            (item.is(Kind::table) && item.entries.size() == 2 && item.find("expect") != nullptr &&
             item.find("found") != nullptr && item.find("expect")->is(Kind::text));
        if (!good) {
            diagnostics.error("wrong-type", item.at, "fails: " + show(item),
                              "expected a path or { expect = PATH, found = X }");
        }
    }
}

void check_list_of(const Node& document, const char* key, void (*check)(const Node&, Diagnostics&),
                   Diagnostics& diagnostics) {
    const Node* list = document.find(key);
    if (list == nullptr) {
        return;
    }
    if (!list->is(Kind::list)) {
        diagnostics.error("wrong-type", list->at, fmt::format("{} = {}", key, show(*list)),
                          fmt::format("expected a list of tables, [[{}]]", key));
        return;
    }
    for (const Node& item : list->items) {
        check(item, diagnostics);
    }
}

void require(const Node& table, const char* where, std::initializer_list<const char*> keys,
             Diagnostics& diagnostics) {
    // A table that only dotted keys make has no place of its own.
    const bool placed = table.at.line > 0 || table.entries.empty();
    const Position at = placed ? table.at : table.entries.front().at;
    for (const char* key : keys) {
        if (table.find(key) == nullptr) {
            diagnostics.error("missing-key", at, fmt::format("{} has no {}", where, key),
                              fmt::format("{} is required", key));
        }
    }
}

void require_in_list(const Node& document, const char* key, const std::string& where,
                     std::initializer_list<const char*> keys, Diagnostics& diagnostics) {
    const Node* list = document.find(key);
    if (list == nullptr || !list->is(Kind::list)) {
        return;
    }
    for (const Node& item : list->items) {
        if (item.is(Kind::table)) {
            require(item, where.c_str(), keys, diagnostics);
        }
    }
}

/// `what` of a save, a load or [engine]: something, and each part once.
void check_parts(const Node& table, Diagnostics& diagnostics) {
    const Node* what = table.find("what");
    if (what != nullptr && what->is(Kind::list) && what->items.empty()) {
        diagnostics.error("bad-value", what->at, "what = []: nothing would be saved or loaded",
                          "what is model, optimizer or both");
    }
    refuse_twins(table, "what", "names", diagnostics);
}

void require_in_steps(const Node& document, Diagnostics& diagnostics) {
    const Node* steps = document.find("step");
    if (steps == nullptr || !steps->is(Kind::list)) {
        return;
    }
    for (const Node& step : steps->items) {
        const auto need = [&](const char* verb, std::initializer_list<const char*> keys) {
            const Node* table = step.is(Kind::table) ? step.find(verb) : nullptr;
            if (table != nullptr && table->is(Kind::table)) {
                require(*table, verb, keys, diagnostics);
            }
        };
        for (const char* verb : {"save", "load"}) {
            const Node* table = step.is(Kind::table) ? step.find(verb) : nullptr;
            if (table != nullptr && table->is(Kind::table)) {
                check_parts(*table, diagnostics);
            }
        }
        need("save", {"to"});
        need("load", {"from"});
        need("edit", {"in"});
        need("damage", {"in"});
        need("fault", {"at"});
        need("hold", {"name", "bytes"});
        need("release", {"name"});
        need("repeat", {"rounds", "do"});
        need("add_param_group", {"params"});
        const Node* added = step.is(Kind::table) ? step.find("add_param_group") : nullptr;
        if (added != nullptr && added->is(Kind::table)) {
            require_in_list(*added, "params", "a parameter", {"name", "shape"}, diagnostics);
        }
    }
}

}  // namespace

void normalise_steps(Node& document) {
    Node* steps = document.find("step");
    if (steps == nullptr || !steps->is(Kind::list)) {
        return;
    }
    for (Node& step : steps->items) {
        for (const auto& [verb, key] : {std::pair("train", "steps"), std::pair("save", "to"),
                                        std::pair("load", "from"), std::pair("release", "name")}) {
            Node* value = step.is(Kind::table) ? step.find(verb) : nullptr;
            if (value != nullptr && (value->is(Kind::text) || value->is(Kind::integer))) {
                Node table = make_table(value->at);
                table.set(key, *value);
                *value = std::move(table);
            }
        }
    }
}

void check_words(const Node& document, Diagnostics& diagnostics) {
    check_section(document, section("file"), diagnostics);
    check_list_of(document, "step", check_step, diagnostics);
    check_list_of(document, "case", check_case, diagnostics);
    const Node* final_expect = document.find("expect");
    if (final_expect != nullptr) {
        check_expect(*final_expect, diagnostics);
    }
    const Node* scenario = document.find("scenario");
    const Node empty = make_table(document.at);
    require(scenario != nullptr && scenario->is(Kind::table) ? *scenario : empty, "[scenario]",
            {"name", "why"}, diagnostics);
    const Node* engine = document.find("engine");
    if (engine != nullptr && engine->is(Kind::table)) {
        check_parts(*engine, diagnostics);
    }
    require_in_list(document, "param", "[[param]]", {"name", "shape"}, diagnostics);
    require_in_list(document, "group", "[[group]]", {"params"}, diagnostics);
    require_in_list(document, "checkpoint", "[[checkpoint]]", {"name", "path"}, diagnostics);
    require_in_steps(document, diagnostics);
}

}  // namespace swaplab::harness::scenario
