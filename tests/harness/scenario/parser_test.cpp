#include "scenario/language/scenario_file.hpp"
#include "scenario/language/vocabulary.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace swaplab::harness::scenario {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr const char* head =
    "scenario.name = \"n\"\nscenario.why = \"w\"\nworld.size = 2\n"
    "param = [{ name = \"a\", shape = [4, 2], placements = [\"Shard(0)\"] },\n"
    "         { name = \"b\", shape = [3] }]\n";
const std::string train = "step = [{ train = 1 }]\n";
constexpr const char* passes = "case = [{ optimizer = \"swap_adamw\", verdict = \"passes\" }]\n";

ScenarioFile parse(const std::string& text) {
    return parse_scenario("mine/it.toml", text);
}

ScenarioFile story(const std::string& steps) {
    return parse(head + ("step = [" + steps + "]\n") + passes);
}

std::string repeat(const std::string& what, std::size_t times) {
    std::string out;
    for (std::size_t i = 0; i < times; ++i) {
        out += what;
    }
    return out;
}

std::vector<std::string> codes(const ScenarioFile& file) {
    std::vector<std::string> out;
    for (const Diagnostic& diagnostic : file.diagnostics.all()) {
        out.push_back(diagnostic.code);
    }
    return out;
}

std::string text(const ScenarioFile& file) {
    std::string out;
    for (const Diagnostic& diagnostic : file.diagnostics.all()) {
        out += format(diagnostic, file.path, file.source);
    }
    return out;
}

TEST(Parser, AcceptsAWholeFile) {
    const ScenarioFile file = story(
        "{ train = 3 }, { save = \"ckpt\" }, { restart = {} },\n"
        "{ load = \"ckpt\", expect.everything.same_as = \"uninterrupted\" }, { train = 1 }");
    EXPECT_EQ(text(file), "");
    ASSERT_EQ(file.runs.size(), 1U);
    EXPECT_EQ(file.runs[0].name, "mine/it[swap_adamw]");
    EXPECT_EQ(file.runs[0].steps[4].label, "train-2");
}

struct Refusal {
    std::string steps;
    const char* code;
    const char* says;
};

/// A story that damages a file of "x" in this way.
std::string damage(const std::string& how) {
    return "{ train = 1 }, { save = \"x\" }, { damage = { in = \"x\", file = \"f\", " + how +
           " } }, { load = \"x\" }";
}

class RefusedStory : public testing::TestWithParam<Refusal> {};

TEST_P(RefusedStory, HasItsCodeAndSaysWhatWasExpected) {
    const ScenarioFile file = story(GetParam().steps);
    EXPECT_THAT(codes(file), Contains(GetParam().code)) << text(file);
    EXPECT_THAT(text(file), HasSubstr(GetParam().says));
    EXPECT_THAT(file.runs, IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(
    Steps, RefusedStory,
    testing::Values(
        Refusal{"{ trian = 3 }", "unknown-key", "nearest: train"},
        Refusal{"{ train = 3, save = \"x\" }", "two-verbs", "one verb per step"},
        Refusal{"{ label = \"x\" }", "no-verb", "a step has one of train"},
        Refusal{"{ train = 3 }, { wait = \"x\" }", "later-stage", "later stage (2)"},
        Refusal{"{ train = { steps = 1, clip = 1.0 } }", "later-stage", "later stage (3)"},
        Refusal{"{ train = \"3\" }", "wrong-type", "expected a whole number"},
        Refusal{"{ train = -1 }", "bad-value", "between 0"},
        Refusal{"{ train = 0 }", "bad-value", "1 to 100000"},
        Refusal{"{ train = { steps = 1, none = [\"c\"] } }", "no-such-name", "no parameter \"c\""},
        Refusal{"{ train = { steps = 2, lr = [0.1] } }", "bad-value", "1 values of lr for 2"},
        Refusal{"{ train = 1 }, { load = \"x\" }", "no-such-name", "no save or checkpoint \"x\""},
        Refusal{"{ train = 1 }, { save = \"x\" }", "unused", "neither loaded nor looked at"},
        Refusal{"{ train = 1 }, { save = {} }", "missing-key", "save has no to"},
        Refusal{"{ train = 1 }, { save = \"\" }", "bad-value", "to is empty"},
        Refusal{"{ train = 1 }, { save = \"a/b\" }, { load = \"a/b\" }", "bad-value",
                "plain names"},
        Refusal{"{ train = 1 }, { save = \"..\" }, { load = \"..\" }", "bad-value", "plain names"},
        Refusal{"{ train = 1 }, { save = \"a\\u0000b\" }, { load = \"a\\u0000b\" }", "bad-value",
                "plain names"},
        Refusal{"{ train = 1 }, { save = { to = \"x\", what = [] } }, { load = \"x\" }",
                "bad-value", "nothing would be saved or loaded"},
        Refusal{"{ train = 1 }, { save = \"x\" }, { load = { from = \"x\", what = [\"model\", "
                "\"model\"] } }",
                "bad-value", "what names \"model\" twice"},
        Refusal{"{ train = 1 }, { restart.order = [\"a\"] }", "bad-value",
                "mine/it.toml:6:34: error[bad-value]: order names every parameter once"},
        Refusal{"{ train = 1, label = \"x\" }, { train = 1, label = \"x\" }", "name-taken",
                "two steps with the label"},
        Refusal{"{ train = 1, label = \"a.b\" }", "bad-value", "a label is letters, digits"},
        Refusal{"{ train = 1, label = \"a b\" }", "bad-value", "a label is letters, digits"},
        Refusal{"{ train = 1, label = \"end\" }", "bad-value", "a label is letters, digits"},
        Refusal{"{ train = 1, label = \"x\" }, { save = \"x\" }, { load = \"x\" }", "name-taken",
                "already names a step"},
        Refusal{"{ set = { lr = 0.1 } }", "missing-key", "one of group and param"},
        Refusal{"{ set = { group = 0, lr = -0.1 } }", "bad-value", "Invalid learning rate: -0.1"},
        Refusal{"{ train = { steps = 2, lr = [0.1, -0.1] } }", "bad-value",
                "Invalid learning rate: -0.1"},
        Refusal{"{ restart.optimizer.eps = -1.0 }", "bad-value", "Invalid epsilon value: -1.0"},
        Refusal{"{ restart.optimizer.lr = nan }", "bad-value", "Invalid learning rate: nan"},
        Refusal{"{ add_param_group = { weight_decay = -1, params = [{ name = \"c\", shape = [1] "
                "}] } }",
                "bad-value", "Invalid weight_decay value: -1.0"},
        Refusal{"{ set = { group = 4, lr = 0.1 } }", "no-such-name", "no such group"},
        Refusal{"{ restart.engine.checks = \"torch\" }", "unknown-key", "restart cannot patch"},
        Refusal{"{ restart.param.c.shape = [1] }", "no-such-path", "no [[param]] \"c\""},
        Refusal{"{ restart.world.sizes = 1 }", "unknown-key", "nearest: size"},
        Refusal{"{ train = 1 }, { save = { to = \"x\", via = \"memory\" } }, "
                "{ restart.world.size = 1 }, { load = \"x\" }",
                "bad-value", "state dict in memory of 2 ranks"},
        Refusal{"{ train = 1 }, { save = { to = \"x\", via = \"live\" } }, { restart = {} }, "
                "{ load = \"x\" }",
                "bad-value", "ends with its process"},
        Refusal{"{ train = 1 }, { save = { to = \"x\", via = \"memory\" } }, "
                "{ damage = { in = \"x\", file = \"f\", delete = true } }, { load = \"x\" }",
                "bad-value", "no files to damage"},
        Refusal{"{ train = 1 }, { save = \"x\" }, { edit = { in = \"x\", of = \"a\" } }",
                "missing-key", "exactly one of drop"},
        Refusal{"{ train = 1 }, { save = \"x\" }, "
                "{ edit = { in = \"x\", of = \"a\", shape = [1000000000, 1000000000] } }, "
                "{ load = \"x\" }",
                "bad-value", "more than 2^28 elements"},
        Refusal{"{ train = 1 }, { save = \"x\" }, "
                "{ damage = { in = \"x\", file = \"../../x\", delete = true } }, "
                "{ load = \"x\" }",
                "bad-value", "the name of a file in the directory"},
        Refusal{"{ train = 1 }, { save = \"x\" }, "
                "{ damage = { in = \"x\", file = \"/x\", delete = true } }, { load = \"x\" }",
                "bad-value", "the name of a file in the directory"},
        Refusal{"{ train = 1, fault = { at = \"copi\" } }", "unknown-value", "nearest: copy"},
        Refusal{"{ restart.lose_unsynced = 1 }", "wrong-type", "lose_unsynced = 1"},
        Refusal{"{ restart.lose_unsyced = true }", "unknown-key", "restart cannot patch"},
        Refusal{"{ restart.host.capacity = \"0 B\" }", "bad-amount", "plain bytes above 0"},
        Refusal{"{ restart.device.schedule = \"exhaustiv\" }", "unknown-value",
                "nearest: exhaustive"},
        Refusal{"{ save = \"x\", fault = { at = \"write\", then = \"lost\" } }, "
                "{ restart.lose_unsynced = true }, { load = \"x\" }",
                "bad-value", "only fsync can be lost"},
        Refusal{"{ restart.lose_unsynced = true }, { save = \"x\", fault = { at = \"fsync\", "
                "then = \"lost\" } }, { restart = {} }, { load = \"x\" }",
                "cannot-fail", "no power is lost after it"},
        Refusal{damage("flip = 1, zero = true"), "missing-key", "exactly one of truncate"},
        Refusal{damage("flip = -1"), "bad-value", "flip = -1"},
        Refusal{damage("extend = \"0 B\""), "bad-amount", "above 0"},
        Refusal{damage("extend = \"9 TiB\""), "unknown-unit", "TiB"},
        Refusal{damage("extend = \"9000 GiB\""), "bad-amount", "at most 1 GiB"},
        Refusal{damage("truncate = \"-1 B\""), "bad-amount", "plain bytes"},
        Refusal{damage("copy_from = \"x\""), "bad-value", "another save or checkpoint"},
        Refusal{damage("copy_from = \"y\""), "no-such-name", "no save or checkpoint \"y\""},
        Refusal{"{ train = 1 }, { save = \"x\" }, { damage = { in = \"x\", of = \"a\", "
                "extend = \"1 B\" } }, { load = \"x\" }",
                "bad-value", "are of a whole file"},
        Refusal{"{ train = 1, fault = { at = \"copy\", then = \"kill\" } }, { train = 1 }",
                "after-kill", "after a kill or stop the other ranks cannot go on together"},
        Refusal{"{ train = 1, fault = { at = \"copy\", then = \"stop\" } }, { train = 1 }",
                "after-kill", "let restart be the next step"},
        Refusal{"{ train = 1, fault = { at = \"copy\", then = \"delay\" } }", "missing-key",
                "belong together"},
        Refusal{"{ train = 1, fault = { at = \"copy\", by = \"5 ms\" } }", "bad-value",
                "belong together"},
        Refusal{"{ train = 1, fault = { at = \"copy\", then = \"delay\", by = \"10 s\" } }",
                "bad-value", "no shorter than the time limit of a step, 10000 ms"},
        Refusal{"{ train = 1, fault = { at = \"copy\", then = \"pause\" } }", "later-stage",
                "word of a later stage"},
        Refusal{"{ train = 1, fault = { at = \"copy\", rank = 7 } }", "bad-value", "2 ranks"}));

INSTANTIATE_TEST_SUITE_P(
    FaultsAndHolds, RefusedStory,
    testing::Values(
        Refusal{"{ train = 1, fault = { at = \"pinned_alloc\", then = \"late\" } }", "bad-value",
                "only what is queued can fail late"},
        Refusal{"{ train = 1, fault = { at = \"copy\", then = \"eio\" } }", "bad-value",
                "copy is no operation of storage: it has no eio"},
        Refusal{"{ train = 1, fault = { at = \"copy\", file = \"x\" } }", "bad-value",
                "it has no file"},
        Refusal{"{ train = 1, fault = { at = \"open\", then = \"short\" } }", "bad-value",
                "only read and write can be short"},
        Refusal{"{ train = 1, fault = { at = \"copy\", nth = \"all\" } }", "unknown-value",
                "nth is one of each"},
        Refusal{"{ train = 1, fault = { at = \"copy\", nth = 0 } }", "bad-value", "nth >= 1"},
        Refusal{"{ train = 1, fault = { at = \"copy\", nth = \"each\" } }, "
                "{ train = 1, fault = { at = \"launch\", nth = \"each\" } }",
                "bad-value", "one fault of a story has nth = \"each\""},
        Refusal{"{ hold = { name = \"x\" } }", "missing-key", "hold has no bytes"},
        Refusal{"{ hold = { name = \"x\", bytes = \"0 B\" } }", "bad-amount", "above 0"},
        Refusal{"{ hold = { name = \"x\", bytes = \"8 B\" } }, "
                "{ hold = { name = \"x\", bytes = \"8 B\" } }",
                "name-taken", "\"x\" is held already"},
        Refusal{"{ hold = { name = \"x\", bytes = \"8 B\" } }, { restart = {} }, "
                "{ release = \"x\" }",
                "no-such-name", "nothing is held as \"x\" here"}));

INSTANTIATE_TEST_SUITE_P(
    Figures, RefusedStory,
    testing::Values(
        Refusal{"{ train = 1, expect.device = { tag = \"a\", occupied.peak = \"8 B\" } }",
                "bad-value", "not known by tag"},
        Refusal{"{ hold = { name = \"x\", bytes = \"8 B\", memory = \"host\", "
                "outside_pool = true } }",
                "bad-value", "outside_pool is of device memory"},
        Refusal{"{ hold = { name = \"x\", bytes = \"8 B\", outside_pool = 1 } }", "wrong-type",
                "outside_pool"},
        Refusal{"{ train = 1, expect.host.reserved.now = \"8 B\" }", "unknown-key",
                "\"reserved\" in [expect.host]"},
        Refusal{"{ restart.host.pinned_policy = \"exakt\" }", "unknown-value", "nearest: exact"},
        Refusal{"{ restart.host.pinned = \"0 B\" }", "bad-amount", "plain bytes above 0"},
        Refusal{"{ train = 1, expect.h2d = { since = \"train\", count = 1 } }", "no-such-name",
                "no step \"train\" before this one"},
        Refusal{"{ train = 1 }, { restart = {} }, "
                "{ train = 1, expect.h2d = { since = \"train\", count = 1 } }",
                "bad-value", "its device is gone"},
        Refusal{"{ train = 1 }, { train = 1 }, "
                "{ train = 1, expect.h2d = { since = \"train\", count.same_as = \"train\" } }",
                "bad-value", "have no like there"},
        Refusal{"{ train = 1 }, { save = \"x\" }, { train = 1, expect.syncs.count.same_as = "
                "\"x\" }",
                "no-such-name", "it has no syncs"}));

INSTANTIATE_TEST_SUITE_P(
    Expectations, RefusedStory,
    testing::Values(
        Refusal{"{ train = 1, expect.param.same_as = \"start\" }", "unknown-key",
                "nearest: params"},
        Refusal{"{ train = 1, expect.params.same_as = \"strat\" }", "no-such-name",
                "nearest: start"},
        Refusal{"{ train = 1, expect.params.same_as = \"train\" }", "cannot-fail",
                "always the same as itself"},
        Refusal{"{ train = 1, expect.params = {} }", "cannot-fail", "expects nothing"},
        Refusal{"{ train = 1, expect.params = { view = \"step\", same_as = \"start\" } }",
                "cannot-fail", "parameters have no views"},
        Refusal{"{ train = 1 }, { save = \"x\", expect.moments = { in = \"x\", view = \"step\", "
                "same_as = \"uninterrupted\" } }",
                "cannot-fail", "saves have no views"},
        Refusal{"{ train = 1, expect.params = { of = \"zz*\", same_as = \"start\" } }",
                "no-such-name", "parameters here: a, b"},
        Refusal{"{ train = 1, expect.device.peak = 65536 }", "missing-unit", "bytes need a unit"},
        Refusal{"{ train = 1, expect.device.peak = \"1 kib\" }", "unknown-unit", "nearest: KiB"},
        Refusal{"{ train = 1, expect.device.peak = \"some\" }", "bad-amount", "bytes need a unit"},
        Refusal{"{ train = 1, expect.device.peak = \"0.3 B\" }", "bad-amount", "not a whole"},
        Refusal{"{ train = 1, expect.device.peak = \"9999999999999999 B\" }", "bad-amount",
                "at most 15 digits"},
        Refusal{"{ train = 1, expect.device.peak.at_most = \"1 GiB\" }", "cannot-fail",
                "the device has no more"},
        Refusal{"{ train = 1, expect.device.peak.at_least = \"0 B\" }", "cannot-fail",
                "always holds"},
        Refusal{"{ train = 1, expect.device = { rank = [2], peak = \"1 B\" } }", "cannot-fail",
                "selects nothing"},
        Refusal{"{ train = 1, expect.device.slope = \"1 B\" }", "cannot-fail", "a repeat step"},
        Refusal{"{ repeat = 1, do = [{ train = 1 }] }", "bad-value", "2 rounds or more"},
        Refusal{"{ repeat = 3, do = [] }", "bad-value", "of some steps"},
        Refusal{"{ repeat = 3 }", "missing-key", "repeat has no do"},
        Refusal{"{ repeat = 501, do = [{ train = 1 }] }", "too-large", "at most 500 steps"},
        Refusal{"{ repeat = 2, do = [{ trian = 1 }] }", "unknown-key", "nearest: train"},
        Refusal{"{ train = 1, expect.refused.naming = [] }", "cannot-fail", "without naming"},
        Refusal{"{ train = 1, expect.error.kind = \"oom\" }", "unknown-value", "kind is one of"},
        Refusal{"{ train = 1, expect.cover.missing = 0 }", "no-such-name", "which checkpoint"},
        Refusal{"{ train = 1, expect.findings.is = [\"rase\"] }", "unknown-value", "nearest: race"},
        Refusal{"{ train = 1, expect = [{ params.same_as = \"start\" }, "
                "{ params.same_as = \"before\" }] }",
                "name-taken", "give one of them a name"}));

struct RefusedFile {
    std::string text;
    const char* code;
};

class RefusedWhole : public testing::TestWithParam<RefusedFile> {};

TEST_P(RefusedWhole, HasItsCode) {
    const ScenarioFile file = parse(GetParam().text);
    EXPECT_THAT(codes(file), Contains(GetParam().code)) << text(file);
}

INSTANTIATE_TEST_SUITE_P(
    Files, RefusedWhole,
    testing::Values(
        RefusedFile{"", "missing-key"}, RefusedFile{"= 1", "syntax"},
        RefusedFile{"\xff\xfe\x00garbage", "syntax"}, RefusedFile{head + train, "cannot-fail"},
        RefusedFile{head + train + "case = [{ optimizer = \"swap_adamw\" }]", "bad-case"},
        RefusedFile{head + train +
                        "case = [{ optimizer = \"adamw\", specimen = [], "
                        "verdict = \"passes\" }]",
                    "bad-case"},
        RefusedFile{head + train +
                        "case = [{ specimen = [\"stale_group\"], "
                        "fails = [\"train.runs\"] }]",
                    "unknown-value"},
        RefusedFile{head + train + "case = [{ specimen = [], fails = [\"load.runs\"] }]",
                    "no-such-path"},
        RefusedFile{head + train + passes + "matrix = { world.size = 2 }", "wrong-type"},
        RefusedFile{head + train + passes + "matrix = { world.sized = [2] }", "unknown-key"},
        RefusedFile{head + train + passes + "matrix = { step.load.staging = [\"none\"] }",
                    "no-such-path"},
        RefusedFile{head + train +
                        "case = [{ optimizer = \"swap_adamw\", verdict = \"passes\", "
                        "where.world.size = 3 }]\nmatrix = { world.size = [1, 2] }",
                    "unused"},
        RefusedFile{head + train + passes + "matrix = { engine.staging = [\"none\", \"shadow\"] }",
                    "unused"},
        RefusedFile{head + train +
                        "case = [{ optimizer = \"swap_adamw\", verdict = \"passes\", "
                        "with.optimizer.slots = 3 }]\nmatrix = { optimizer.slots = [1, 2] }",
                    "unused"},
        RefusedFile{head + train + passes + "group = [{ params = [\"a\"] }]", "unused"},
        RefusedFile{head + train +
                        "case = [{ specimen = [\"none_leaf\", \"none_leaf\"], "
                        "fails = [\"train.runs\"] }]",
                    "bad-value"},
        RefusedFile{
            head + train + "case = [{ specimen = [], fails = [\"train.runs\", \"train.runs\"] }]",
            "bad-value"},
        RefusedFile{
            head + train + "matrix = { scenario.seed = [1, 2] }\ncase = [" +
                repeat(std::string("{ optimizer = \"adamw\", verdict = \"passes\" },"), 513) + "]",
            "too-many-cells"},
        RefusedFile{head + train + passes + "twin = [{ name = \"x\" }]", "later-stage"},
        RefusedFile{head + train + passes + "[device]\ncapacity = 65536", "missing-unit"},
        RefusedFile{head + train + passes + "[device]\ncapacity = \"8589934591 GiB\"",
                    "bad-amount"},
        RefusedFile{head + train + passes + "checkpoint = [{ name = \"..\", path = \".\" }]",
                    "bad-value"},
        RefusedFile{head + std::string("step = [") + repeat("{ train = 1 },", 501) + "]\n" + passes,
                    "too-large"},
        RefusedFile{head + train + passes + "[scenario.x]", "unknown-key"}));

TEST(Parser, ReportsSeveralErrorsOfOneFileInOrder) {
    const ScenarioFile file = story("{ trian = 1 }, { train = 1, expect.params.same = \"start\" }");
    EXPECT_GE(file.diagnostics.error_count(), 2U);
}

TEST(Parser, PutsTheCaretUnderTheWord) {
    const ScenarioFile file = parse("scenario.name = \"n\"\nscenario.wy = \"w\"\n");
    EXPECT_THAT(
        text(file),
        HasSubstr("mine/it.toml:2:10: error[unknown-key]: \"wy\" in [scenario]; nearest: "
                  "why\n    2 | scenario.wy = \"w\"\n      |          ^~ [scenario] knows"));
}

TEST(Parser, RefusesMoreThan64Cells) {
    std::string seeds = "1";
    for (int i = 2; i <= 65; ++i) {
        seeds += ", " + std::to_string(i);
    }
    EXPECT_THAT(
        codes(parse(head + train + passes + "matrix = { scenario.seed = [" + seeds + "] }")),
        Contains("too-many-cells"));
}

TEST(Parser, NamesRunsByCaseAndCell) {
    const ScenarioFile file =
        parse(head + train +
              "case = [{ optimizer = \"swap_adamw\", verdict = \"passes\" },\n"
              "{ specimen = [\"device_cast\", \"cast_stays\"], where.world.size = 2, "
              "fails = [\"train.runs\"] }, { specimen = [], verdict = \"passes\" }]\n"
              "matrix = { world.size = [1, 2] }");
    std::vector<std::string> names;
    for (const auto& run : file.runs) {
        names.push_back(run.name);
    }
    EXPECT_THAT(names, testing::ElementsAre("mine/it[swap_adamw, world.size=1]",
                                            "mine/it[swap_adamw, world.size=2]",
                                            "mine/it[specimen device_cast+cast_stays, "
                                            "world.size=2]",
                                            "mine/it[specimen none, world.size=1]",
                                            "mine/it[specimen none, world.size=2]"));
}

TEST(Parser, OverridesReplaceAnAxis) {
    Overrides overrides;
    overrides.world = 3;
    overrides.set = {{"device.capacity", "64 MiB"}};
    const ScenarioFile file = parse_scenario(
        "it.toml", head + train + passes + "matrix = { world.size = [1, 2] }", overrides);
    ASSERT_EQ(file.runs.size(), 1U) << text(file);
    EXPECT_EQ(file.runs[0].start.world_size, 3);
    EXPECT_EQ(file.runs[0].start.capacity_bytes, std::uint64_t{64} << 20U);
    EXPECT_EQ(file.runs[0].name, "it[swap_adamw, world.size=3]");
}

struct BadOptimizer {
    const char* toml;
    const char* says;
    int column;
};

TEST(Parser, RefusesHyperParametersInTheWordsOfPyTorch) {
    for (const BadOptimizer& one :
         {BadOptimizer{"lr = -1.0", "Invalid learning rate: -1.0", 18},
          BadOptimizer{"lr = nan", "Invalid learning rate: nan", 18},
          BadOptimizer{"lr = inf", "lr = inf: fp32 cannot hold it", 18},
          BadOptimizer{"lr = 1e39", "lr = 1e+39: fp32 cannot hold it", 18},
          BadOptimizer{"eps = -1e-8", "Invalid epsilon value: -1e-08", 19},
          BadOptimizer{"betas = [1.0, 0.5]", "Invalid beta parameter at index 0: 1.0", 22},
          BadOptimizer{"betas = [0.5, -0.5]", "Invalid beta parameter at index 1: -0.5", 27},
          BadOptimizer{"weight_decay = -0.1", "Invalid weight_decay value: -0.1", 28}}) {
        const ScenarioFile file = parse(head + std::string("step = [{ train = 1 }]\n") + passes +
                                        "optimizer = { " + one.toml + " }\n");
        ASSERT_EQ(file.diagnostics.all().size(), 1U) << text(file);
        const Diagnostic& found = file.diagnostics.all().front();
        EXPECT_EQ(found.message, one.says);
        EXPECT_EQ(found.at.line, 8) << one.toml;
        EXPECT_EQ(found.at.column, one.column + 2) << one.toml;
    }
    EXPECT_EQ(text(story("{ set = { group = 0, lr = 0, betas = [0, 0.999], eps = 0 } }")), "");
}

TEST(Parser, EveryErrorHasALine) {
    for (const char* file :
         {"", "scenario.why = 'w'", "[scenario]\nwhy = 'w'", "scenario.name = 'n'", "x = 1",
          "scenario = { name = 'n', why = 'w' }\nstep = [{ train = 1 }]"}) {
        const ScenarioFile parsed = parse(file);
        for (const Diagnostic& diagnostic : parsed.diagnostics.all()) {
            EXPECT_GT(diagnostic.at.line, 0) << format(diagnostic, "it.toml", parsed.source);
        }
    }
    EXPECT_THAT(text(parse("world.size = 2\nscenario.why = 'w'")),
                HasSubstr("it.toml:2:1: error[missing-key]: [scenario] has no name"));
}

TEST(Parser, AnAxisThatOneCaseReadsIsUsed) {
    const ScenarioFile file =
        parse(head + train + "matrix = { optimizer.slots = [1, 2] }\n" +
              "case = [{ optimizer = \"swap_adamw\", verdict = \"passes\" }, { optimizer = "
              "\"adamw\", verdict = \"passes\", with.optimizer.slots = 3 }]");
    EXPECT_EQ(text(file), "");
    EXPECT_EQ(file.runs.size(), 4U);
}

TEST(Parser, ListsUnprovenExpectations) {
    const ScenarioFile file = story("{ train = 1, expect.params.differs_from = \"start\" }");
    ASSERT_EQ(file.unproven.size(), 1U);
    EXPECT_EQ(file.unproven[0].second, "train.params.differs_from");
}

TEST(Parser, WarnsOfMomentsBeforeTraining) {
    const ScenarioFile file = story("{ init_state = {}, expect.moments.same_as = \"start\" }");
    EXPECT_FALSE(file.diagnostics.has_errors()) << text(file);
    EXPECT_THAT(codes(file), Contains("before-training"));
}

class Hostile : public testing::TestWithParam<std::string> {};

TEST_P(Hostile, IsRefusedWithoutCrash) {
    EXPECT_TRUE(parse(GetParam()).diagnostics.has_errors());
}

INSTANTIATE_TEST_SUITE_P(
    Files, Hostile,
    testing::Values(repeat("[", 100000), repeat("{", 100000), "a" + repeat(".a", 100000) + "=1",
                    "a" + repeat(".a", 3000) + " = 1", "x = " + repeat("[", 200) + repeat("]", 200),
                    head + train + "world.mesh = [99999999999, 99999999999]",
                    head + train + passes + "seed = 99999999999999999999999999", "step = 5",
                    "step = [5]", "case = 5", "expect = 5", "param = 5", "matrix = 5",
                    "scenario = []", "group = [[]]", "step = [{ train = {}, expect = 5 }]",
                    "param = [{ name = 3, shape = \"x\", placements = 7, init = [] }]",
                    head + std::string("step = [{ train = 1, fault = 3 }]\n") + passes,
                    head + std::string("step = [{ restart = { world = 3 } }]\n") + passes,
                    head + std::string("step = [{ save = [] }, { load = [] }]\n") + passes,
                    std::string(10 << 20, 'x')));

TEST(Words, OfLaterStagesAreListedAsSuch) {
    EXPECT_THAT(list_words("step.wait"), HasSubstr("of stage 2"));
    EXPECT_THAT(list_words("device.capacity"), HasSubstr("bytes with a unit"));
    EXPECT_EQ(list_words("nonsense"), "");
}

TEST(Words, EverySectionThatIsNamedExists) {
    for (const Section& in : sections()) {
        for (const Word& word : in.words) {
            if (word.stage == 1 && (word.type == Type::table || word.type == Type::tables)) {
                EXPECT_EQ(section(word.values).name, std::string(word.values));
            }
        }
    }
}

}  // namespace
}  // namespace swaplab::harness::scenario
