#include "scenario/language/patch.hpp"

#include "scenario/language/vocabulary.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace swaplab::harness::scenario {
namespace {

using Kind = Node::Kind;

bool lost(const NodePath& patch, const std::string& what, Diagnostics& diagnostics) {
    diagnostics.error("no-such-path", patch.at, fmt::format("{}: {}", patch.text(), what),
                      "paths are world.size, param.NAME.shape, step.LABEL.KEY, ...");
    return false;
}

bool set_below(Node& table, const NodePath& patch, std::size_t from, Diagnostics& diagnostics) {
    Node* at = &table;
    for (std::size_t i = from; i + 1 < patch.keys.size(); ++i) {
        Node* next = at->find(patch.keys[i]);
        at = next != nullptr ? next : &at->set(patch.keys[i], make_table(patch.at));
        if (!at->is(Kind::table)) {
            return lost(patch, fmt::format("{} is no table", patch.keys[i]), diagnostics);
        }
    }
    if (from >= patch.keys.size()) {
        return lost(patch, "it names no value", diagnostics);
    }
    if (patch.keys[0] == "world" && patch.keys.back() == "size") {
        at->erase("mesh");  // a mesh implies the old size
    }
    at->set(patch.keys.back(), patch.value);
    return true;
}

Node* item_named(Node& list, const std::string& name) {
    for (Node& item : list.items) {
        const Node* found = item.is(Kind::table) ? item.find("name") : nullptr;
        if (found != nullptr && found->is(Kind::text) && found->text == name) {
            return &item;
        }
    }
    return nullptr;
}

bool apply_to_step(Node& document, const NodePath& patch, Diagnostics& diagnostics) {
    const std::vector<std::string> labels = step_labels(document);
    const auto found = std::find(labels.begin(), labels.end(), patch.keys[1]);
    if (found == labels.end()) {
        const std::string near = nearest(patch.keys[1], labels);
        return lost(patch,
                    fmt::format("no step \"{}\"{}", patch.keys[1],
                                near.empty() ? "" : "; nearest: " + near),
                    diagnostics);
    }
    Node& step = document.find("step")->items[static_cast<std::size_t>(found - labels.begin())];
    if (patch.keys[2] == "fault") {
        return set_below(step, patch, 2, diagnostics);
    }
    Node* verb = step.find(verb_of(step));
    if (verb == nullptr || !verb->is(Kind::table)) {
        return lost(patch, "the step has no keys", diagnostics);
    }
    return set_below(*verb, patch, 2, diagnostics);
}

bool apply_to_group(Node& document, const NodePath& patch, Diagnostics& diagnostics) {
    Node* groups = document.find("group");
    const bool number =
        patch.keys[1].size() == 1 && patch.keys[1][0] >= '0' && patch.keys[1][0] <= '9';
    const std::size_t index = number ? static_cast<std::size_t>(patch.keys[1][0] - '0') : 0;
    if (!number || groups == nullptr || !groups->is(Kind::list) || index >= groups->items.size()) {
        return lost(patch, fmt::format("no [[group]] number {}", patch.keys[1]), diagnostics);
    }
    return set_below(groups->items[index], patch, 2, diagnostics);
}

}  // namespace

bool apply_patch(Node& document, const NodePath& patch, Diagnostics& diagnostics) {
    const std::string& first = patch.keys.front();
    if (patch.keys.size() == 1 && (first == "group" || first == "order")) {
        document.set(first, patch.value);
        return true;
    }
    if (patch.keys.size() >= 3 && first == "step") {
        return apply_to_step(document, patch, diagnostics);
    }
    if (patch.keys.size() >= 3 && first == "group") {
        return apply_to_group(document, patch, diagnostics);
    }
    if (patch.keys.size() >= 3 && (first == "param" || first == "checkpoint")) {
        Node* list = document.find(first);
        Node* item = list != nullptr ? item_named(*list, patch.keys[1]) : nullptr;
        if (item == nullptr) {
            return lost(patch, fmt::format("no [[{}]] \"{}\"", first, patch.keys[1]), diagnostics);
        }
        return set_below(*item, patch, 2, diagnostics);
    }
    const Word* word = find_word(section("file"), first);
    if (word == nullptr || word->type != Type::table || patch.keys.size() < 2) {
        return lost(patch, fmt::format("no set-up table \"{}\"", first), diagnostics);
    }
    return set_below(document, patch, 0, diagnostics);
}

std::vector<std::string> step_labels(const Node& document) {
    std::vector<std::string> labels;
    std::map<std::string, int> uses;
    const Node* steps = document.find("step");
    if (steps == nullptr || !steps->is(Kind::list)) {
        return labels;
    }
    for (const Node& step : steps->items) {
        const std::string verb = verb_of(step);
        const int use = ++uses[verb];
        const Node* given = step.is(Kind::table) ? step.find("label") : nullptr;
        if (given != nullptr && given->is(Kind::text)) {
            labels.push_back(given->text);
        } else {
            labels.push_back(use == 1 || verb.empty() ? verb : fmt::format("{}-{}", verb, use));
        }
    }
    return labels;
}

std::string verb_of(const Node& step) {
    for (const std::string& verb : verbs()) {
        if (step.is(Kind::table) && step.find(verb) != nullptr) {
            return verb;
        }
    }
    return "";
}

bool glob_matches(std::string_view pattern, std::string_view text) {
    std::size_t p = 0;
    std::size_t t = 0;
    std::size_t star = std::string_view::npos;
    std::size_t mark = 0;
    while (t < text.size()) {
        if (p < pattern.size() && pattern[p] == '*') {
            star = p++;
            mark = t;
        } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t])) {
            ++p;
            ++t;
        } else if (star != std::string_view::npos) {
            p = star + 1;
            t = ++mark;
        } else {
            return false;
        }
    }
    while (p < pattern.size() && pattern[p] == '*') {
        ++p;
    }
    return p == pattern.size();
}

}  // namespace swaplab::harness::scenario
