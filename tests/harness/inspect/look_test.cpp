#include "inspect/look.hpp"

#include "inspect/table.hpp"
#include "inspect_fixture.hpp"

#include <regex>

namespace swaplab::harness {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

std::string inspect(const std::string& name, const Look& look) {
    Memory memory;
    InspectOptions options = of(name);
    options.look = look;
    return memory.add(name).text(options);
}

std::string diff(const Look& look) {
    Memory memory;
    memory.add("v2_w2_uneven").add("v2_w2_uneven_amsgrad");
    std::ostringstream out;
    DiffOptions options{"v2_w2_uneven", "v2_w2_uneven_amsgrad", false, look};
    (void)diff_command(memory.storage(), options, out);
    return out.str();
}

std::string without_escapes(const std::string& text) {
    return std::regex_replace(text, std::regex("\x1b\\[[0-9]*m"), "");
}

std::vector<std::string> lines(const std::string& text) {
    std::vector<std::string> out;
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);) {
        out.push_back(line);
    }
    return out;
}

Look colored() {
    Look look;
    look.color = true;
    return look;
}

Look narrow(std::size_t columns) {
    Look look;
    look.columns = columns;
    return look;
}

TEST(Look, ColoursVerdictsAndKeysAndNothingElse) {
    const std::string lost = inspect("v0_w2_even", colored());
    EXPECT_THAT(lost, HasSubstr("\x1b[31mfinding\x1b[0m  lost-shards"));
    EXPECT_THAT(lost, HasSubstr("\x1b[1moptimizer.state.a.exp_avg\x1b[0m "));
    EXPECT_THAT(lost, StartsWith("\x1b[1mv0_w2_even\x1b[0m   DCP"));
    EXPECT_EQ(without_escapes(lost), inspect("v0_w2_even", {}));
    EXPECT_THAT(inspect("v2_w2_even", colored()), HasSubstr("\x1b[32mok\x1b[0m    every moment"));
    EXPECT_THAT(inspect("v0_w2_even_optonly", colored()),
                HasSubstr("\x1b[33mcannot tell\x1b[0m  whether"));
    EXPECT_EQ(without_escapes(diff(colored())), diff({}));
    EXPECT_NE(diff(colored()), diff({}));
}

TEST(Look, WithoutColourHasNoEscapes) {
    EXPECT_THAT(inspect("v0_w2_even", {}), Not(HasSubstr("\x1b")));
    EXPECT_THAT(diff({}), Not(HasSubstr("\x1b")));
}

TEST(Look, KeysShrinkFromTheirLeftUntilTheTableFits) {
    const auto rows = lines(inspect("v0_w2_even", narrow(110)));
    const auto whole = lines(inspect("v0_w2_even", {}));
    ASSERT_EQ(rows.size(), whole.size());
    EXPECT_GT(whole[3].size(), 110U);
    for (std::size_t i = 2; i < 9; ++i) {  // header and six rows
        EXPECT_LE(rows[i].size(), 110U) << rows[i];
    }
    EXPECT_THAT(rows[3], StartsWith("  ...zer.state.a.exp_avg   [6,2]"));
    EXPECT_THAT(rows[3], HasSubstr("12 of 24 (50.0 %)"));  // numbers are never cut
    EXPECT_EQ(rows[1], whole[1]);                          // nor is the finding
}

TEST(Look, LinesOfADiffShrinkTheKeyOnly) {
    const auto rows = lines(diff(narrow(72)));
    EXPECT_LE(rows[0].size(), 72U);
    EXPECT_THAT(rows[0], StartsWith("kind      ..."));
    EXPECT_THAT(rows[0], HasSubstr("max_exp_avg_sq   A None   B tensor [5,3] fp32"));
    EXPECT_EQ(diff(narrow(500)), diff({}));
}

TEST(Look, ATerminalTooNarrowForTheRestKeepsTwelveCharactersOfTheKey) {
    EXPECT_EQ(fitted("optimizer.state.layers.0.exp_avg", 3), "...0.exp_avg");
    EXPECT_EQ(fitted("w", 3), "w");
    EXPECT_EQ(aligned_keys({}, "  ", narrow(20)), "");
    EXPECT_EQ(aligned_keys({{"key", "x"}, {"a", ""}}, "", narrow(20)), "key   x\na\n");
}

TEST(Look, KeysCannotSteerTheTerminal) {
    const auto rows = [](const Look& look) {
        return dressed(aligned_keys({{"key"}, {"a\x1b[2J\n\x07\x7f"}}, "", look), look);
    };
    EXPECT_EQ(rows({}), "key\na?[2J???\n");
    EXPECT_EQ(without_escapes(rows(colored())), "key\na?[2J???\n");
    EXPECT_EQ(dressed("a\x01 b\x02 c\n", {}), "a? b? c\n");
    EXPECT_EQ(dressed("a\x01 b\n", colored()), "a\x1b[1m b\n\x1b[0m");
}

TEST(Look, QuietKeepsVerdictsOnly) {
    Look quiet;
    quiet.quiet = true;
    EXPECT_EQ(inspect("v2_w2_even", quiet), "");
    EXPECT_EQ(lines(inspect("v0_w2_even", quiet)).size(), 1U);
    EXPECT_THAT(inspect("v0_w2_even", quiet), StartsWith("finding  lost-shards"));
    EXPECT_THAT(diff(quiet), StartsWith("23 keys equal, 4 differ"));
}

}  // namespace
}  // namespace swaplab::harness
