#pragma once

/// Every word of the scenario language: used by the check of files, by nearest words, and by
/// `swaplab list --words`. Later stages are listed too, so that their words are refused as such.

#include "scenario/language/node.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace swaplab::harness::scenario {

/// What a value may be.
enum class Type : std::uint8_t {
    text,        ///< a text that is not empty
    texts,       ///< one text or a list of them: names or globs
    word,        ///< one of Word::values
    words,       ///< one of them or a list of them
    flag,        ///< true or false
    count,       ///< a whole number >= 0
    ordinal,     ///< a count or the word
    counts,      ///< one of them or a list of them
    number,      ///< any number
    numbers,     ///< a list of numbers
    betas,       ///< two numbers
    bytes,       ///< an amount with a unit
    elements,    ///< an amount in elements
    figure,      ///< an amount, a count, or a table of relations
    duration,    ///< "5 s"
    shape,       ///< a list of sizes
    placements,  ///< a list of PyTorch's placements
    init,        ///< "seeded" or a number
    value,       ///< a number, true/false, a text, or { NAME = value }
    reference,   ///< a name of something to compare with
    ranks,       ///< "all", "survivors" or a list of ranks
    table,       ///< a table of section Word::values
    tables,      ///< a list of such tables
    patch,       ///< a table of paths into the set-up tables
    free,        ///< checked elsewhere (step, expect, case, matrix)
};

struct Word {
    const char* name;
    Type type;
    int stage;             ///< 1 is known; 2 and 3 are refused as words of a later stage
    const char* values;    ///< "a|b|2:c" for word(s); the section for table(s)
    const char* fallback;  ///< the default as the file would say it, or ""
    const char* says;
};

struct Section {
    const char* name;  ///< "device", "step.train", "expect.params"
    std::vector<Word> words;
};

/// All sections, in the order of docs/scenarios.md.
[[nodiscard]] const std::vector<Section>& sections();
/// The section must exist.
[[nodiscard]] const Section& section(std::string_view name);
[[nodiscard]] const Word* find_word(const Section& in, std::string_view name);

/// The verbs of steps, stage 1, in order.
[[nodiscard]] const std::vector<std::string>& verbs();

/// One word of the language, as `swaplab list --words` tells it.
struct ListedWord {
    std::string path;   ///< "device.capacity"
    std::string takes;  ///< "bytes with a unit"; empty of a later stage
    int stage = 1;
    std::string fallback;
    std::string says;
};

/// Words whose path begins with `prefix`, or that are it.
[[nodiscard]] std::vector<ListedWord> listed_words(std::string_view prefix);
/// Rows for `swaplab list --words [PREFIX]`: "device.capacity  bytes  \"1 GiB\"  ...".
[[nodiscard]] std::string list_words(std::string_view prefix);

/// "a list of names", "bytes with a unit, \"64 KiB\"": what a word wants.
[[nodiscard]] std::string expected_text(const Word& word);

/// Checks `table` against `in`: unknown keys, words of later stages, types, values.
void check_section(const Node& table, const Section& in, Diagnostics& diagnostics);

/// Turns short forms into long ones (train = 3 -> train = { steps = 3 }) so that paths work.
void normalise_steps(Node& document);

/// Checks a whole file: every table, step, expectation and case.
void check_words(const Node& document, Diagnostics& diagnostics);

}  // namespace swaplab::harness::scenario
