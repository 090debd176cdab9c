/// Every word that speaks of worlds, devices, memory, copies and faults is used by a shipped file.

#include "scenario/language/scenario_file.hpp"
#include "scenario/language/selection.hpp"
#include "scenario/language/vocabulary.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

namespace swaplab::harness::scenario {
namespace {

using Kind = Node::Kind;

/// "device.capacity", and of words with few values "device.schedule = pct".
using Used = std::set<std::string>;

void use_table(const Node& table, const Section& in, Used& used);

void use_value(const Node& value, const Word& word, const std::string& path, Used& used) {
    used.insert(path);
    for (const Node& item : value.items) {
        use_value(item, word, path, used);
    }
    if (value.is(Kind::text)) {
        used.insert(path + " = " + value.text);
    }
    const bool nested = word.type == Type::table || word.type == Type::tables;
    if (nested && value.is(Kind::table)) {
        use_table(value, section(word.values), used);
    } else if (word.type == Type::figure && value.is(Kind::table)) {
        use_table(value, section("relation"), used);
    }
}

void use_expectation(const Node& expect, Used& used) {
    for (const Node& item : expect.items) {
        use_table(item, section("expect"), used);
    }
    use_table(expect, section("expect"), used);
}

/// Steps are named by their labels: what `changes` sets of one is looked for in all verbs.
void use_step_change(const Node& changes, Used& used) {
    for (const Section& in : sections()) {
        if (std::string(in.name).starts_with("step.")) {
            use_table(changes, in, used);
        }
    }
    if (const Node* fault = changes.find("fault")) {
        use_table(*fault, section("fault"), used);
    }
}

/// A table of paths into the set-up and the steps.
void use_patch(const Node& patch, Used& used) {
    use_table(patch, section("file"), used);
    if (const Node* steps = patch.find("step")) {
        for (const NodeEntry& step : steps->entries) {
            use_step_change(step.value, used);
        }
    }
}

void use_table(const Node& table, const Section& in, Used& used) {
    for (const NodeEntry& entry : table.entries) {
        const Word* word = find_word(in, entry.key);
        if (word != nullptr) {
            use_value(entry.value, *word, std::string(in.name) + "." + entry.key, used);
        }
        if (word != nullptr && word->type == Type::patch) {
            use_patch(entry.value, used);
        }
    }
}

void use_file(const Node& document, Used& used) {
    use_table(document, section("file"), used);
    const auto each = [&](const char* list, const auto& work) {
        if (const Node* node = document.find(list)) {
            std::for_each(node->items.begin(), node->items.end(), work);
        }
    };
    each("step", [&](const Node& step) {
        use_table(step, section("step"), used);
        if (const Node* expect = step.find("expect")) {
            use_expectation(*expect, used);
        }
    });
    each("case", [&](const Node& one) {
        use_table(one, section("case"), used);
        if (const Node* where = one.find("where")) {
            use_patch(*where, used);
        }
    });
    if (const Node* matrix = document.find("matrix")) {
        use_patch(*matrix, used);
    }
}

Used shipped_words() {
    Used used;
    for (const Selection& selection : select_scenarios({SWAPLAB_SOURCE_DIR "/scenarios"})) {
        use_file(load_scenario(selection.file).document, used);
    }
    return used;
}

std::vector<std::string> values_of(const Word& word) {
    std::vector<std::string> out;
    std::string values = word.type == Type::word || word.type == Type::ordinal ? word.values : "";
    while (!values.empty()) {
        const std::size_t end = std::min(values.find('|'), values.size());
        const std::string value = values.substr(0, end);
        if (value.find(':') == std::string::npos) {  // of this stage
            out.push_back(value);
        }
        values.erase(0, end + 1);
    }
    return out;
}

/// Sections with the same words: one of them must use each.
using Alike = std::vector<std::string>;

std::vector<std::string> unused(const Alike& alike, const Used& used) {
    const auto is_used = [&](const std::string& word) {
        return std::any_of(alike.begin(), alike.end(), [&](const std::string& name) {
            return used.contains(name + "." + word);
        });
    };
    std::vector<std::string> out;
    for (const std::string& name : alike) {
        for (const Word& word : section(name).words) {
            if (word.name == std::string("name")) {
                continue;  // tells expectations apart and says nothing
            }
            std::vector<std::string> forms{word.name};
            const bool expects = name.starts_with("expect.");
            for (const std::string& value : expects ? Alike{} : values_of(word)) {
                if (word.fallback != "\"" + value + "\"") {
                    forms.push_back(std::string(word.name) + " = " + value);
                }
            }
            std::erase_if(forms,
                          [&](const std::string& form) { return word.stage > 1 || is_used(form); });
            out.insert(out.end(), forms.begin(), forms.end());
        }
    }
    return out;
}

TEST(Words, OfWorldsDevicesMemoryCopiesAndFaultsAreAllUsedByScenarios) {
    const Used used = shipped_words();
    for (const Alike& alike : {Alike{"world"},
                               {"device"},
                               {"host"},
                               {"storage"},
                               {"step.damage"},
                               {"step.hold"},
                               {"step.release"},
                               {"step.repeat"},
                               {"fault"},
                               {"expect.device", "expect.pinned", "expect.host", "expect.memory"},
                               {"expect.reserved"},
                               {"expect.h2d", "expect.d2h", "expect.d2d", "expect.read",
                                "expect.written", "expect.syncs"},
                               {"expect.error"},
                               {"expect.findings"},
                               {"expect.trace"},
                               {"relation"}}) {
        EXPECT_THAT(unused(alike, used), ::testing::IsEmpty()) << alike.front();
    }
}

TEST(Words, ThatNoFileUsesAreFound) {
    Used used;
    use_file(parse_scenario("it.toml", "device.schedule = \"pct\"\n").document, used);
    const std::vector<std::string> left = unused({"device"}, used);
    EXPECT_THAT(left, ::testing::Contains("capacity"));
    EXPECT_THAT(left, ::testing::Contains("schedule = random"));
    EXPECT_THAT(left, ::testing::Not(::testing::Contains("schedule = pct")));
}

}  // namespace
}  // namespace swaplab::harness::scenario
