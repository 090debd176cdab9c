#include "scenario/play/gradient_file.hpp"
#include "scenario/play/seeded_values.hpp"
#include "scenario/play/step_error.hpp"
#include "story.hpp"
#include "support/temporary_directory.hpp"

#include "swaplab/harness/storage.hpp"
#include "swaplab/sim/error.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <system_error>

namespace swaplab::harness::scenario {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

TEST(Execute, FailsTheRunThatThisMachineCannotCarryAndSaysWhy) {
    const ScenarioFile file =
        parse_scenario("it.toml", model + "step = [{ train = 1 }]\ncase = [{ " + ours + " }]\n");
    const auto no_memory = [](bool inside_a_rank) {
        return [=](const std::string& label, std::int64_t) {
            if (label.empty() != inside_a_rank) {
                throw std::bad_alloc();
            }
        };
    };
    for (const Verdict& verdict :
         {execute(file.runs.at(0), no_memory(true)), execute(file.runs.at(0), no_memory(false)),
          execute_inverted(file.runs.at(0), no_memory(false))}) {
        EXPECT_EQ(verdict.status, Status::fail);
        EXPECT_TRUE(verdict.refused_by_machine);
        EXPECT_THAT(why(verdict), HasSubstr("not enough memory"));
    }
}

TEST(Execute, KnowsAFullDiskFromAnInjectedFault) {
    const auto refused = [](const char* reason) {
        const StorageError error("cannot write", {{"operation", "write"}, {"reason", reason}});
        return is_machines_refusal(step_error(std::make_exception_ptr(error), 0, "save"));
    };
    EXPECT_TRUE(refused("no space left"));
    EXPECT_FALSE(refused("injected"));
    const Verdict verdict = verdict_of(
        "{ train = 1 }, { save = \"x\", fault = { at = \"write\" } }, { load = \"x\" }", ours);
    EXPECT_EQ(verdict.status, Status::fail);
    EXPECT_FALSE(verdict.refused_by_machine);
}

TEST(Play, ResumesBitForBitInEveryWorld) {
    for (const std::int64_t world : {1, 2, 3, 4}) {
        Overrides overrides;
        overrides.world = world;
        const Verdict verdict = verdict_of(
            "{ train = 3 }, { save = \"ckpt\" }, { restart = {} }, "
            "{ load = \"ckpt\", expect.everything.same_as = \"uninterrupted\" }, "
            "{ train = 2, expect.everything.same_as = \"adamw\" }",
            ours, "", overrides);
        EXPECT_EQ(verdict.status, Status::pass) << why(verdict);
    }
}

TEST(Play, APeakOneByteOffFails) {
    const std::string peak = "{ train = 1, expect.device.peak = [\"1 resident\", \"1 ring\"";
    EXPECT_EQ(verdict_of(peak + "] }", ours).status, Status::pass);
    EXPECT_EQ(verdict_of(peak + ", \"1 B\"] }", ours).status, Status::fail);
    EXPECT_EQ(verdict_of(peak + ", \"-1 B\"] }", ours).status, Status::fail);
}

TEST(Play, EqualSeedsHaveEqualDigests) {
    const std::string steps = "{ train = 3, expect.params.differs_from = \"start\" }";
    Overrides one;
    one.seed = 1;
    one.set = {{"device.schedule", "random"}};
    Overrides two = one;
    two.seed = 2;
    const std::uint64_t first = verdict_of(steps, ours, "", one).digest;
    EXPECT_EQ(verdict_of(steps, ours, "", one).digest, first);
    EXPECT_NE(verdict_of(steps, ours, "", two).digest, first);
}

TEST(Play, AFaultThatIsNeverReachedFailsTheRun) {
    const Verdict verdict = verdict_of("{ train = 1, fault = { at = \"copy\", nth = 999 } }", ours);
    EXPECT_EQ(verdict.status, Status::fail);
    EXPECT_THAT(why(verdict), HasSubstr("the fault did not happen: rank 0 did not pass copy 999"));
}

TEST(Play, FaultsOfEverySeamBreakTheirStep) {
    struct Case {
        const char* step;
        const char* at;
        const char* kind;
    };
    for (const Case& one :
         {Case{"train = 1", "device_alloc", "out_of_memory"}, Case{"train = 1", "copy", "device"},
          Case{"train = 1", "launch", "device"}, Case{"save = \"x\"", "open", "storage"},
          Case{"save = \"x\"", "write", "storage"}, Case{"save = \"x\"", "fsync", "storage"},
          Case{"save = \"x\"", "rename", "storage"}, Case{"save = \"x\"", "mkdir", "storage"},
          Case{"save = \"x\"", "plan", "storage"}, Case{"save = \"x\"", "stage", "storage"},
          Case{"save = \"x\"", "publish", "storage"}}) {
        // What a failed save left may be looked at, but must not be loadable by accident.
        const std::string step = one.step;
        const std::string then = step.starts_with("save")
                                     ? ", { load = \"x\", expect.error = { naming = [\"x\"] } }"
                                     : "";
        const Verdict verdict = verdict_of(
            "{ " + step + ", fault = { at = \"" + one.at + "\" }, expect.error = { kind = \"" +
                one.kind + "\", naming = [\"rank 0\"], leaves = \"anything\" } }" + then,
            ours);
        bool failed_as_expected = false;
        for (const Check& check : verdict.checks) {
            failed_as_expected = failed_as_expected || check.error_kind == one.kind;
        }
        EXPECT_TRUE(failed_as_expected) << one.at << ": " << why(verdict);
    }
}

TEST(Play, ForeignExceptionsAreErrors) {
    const Verdict verdict = verdict_of(
        "{ train = 1, fault = { at = \"launch\", then = \"throw\" } }",
        "specimen = [], fails = [{ expect = \"train.runs\", found = \"exception\" }]", "");
    EXPECT_EQ(verdict.status, Status::caught) << why(verdict);
}

TEST(Play, WhatIsThrownOutsideAStepIsTheErrorOfItsStep) {
    const ScenarioFile file =
        parse_scenario("it.toml", model + "step = [{ train = 1 },\n{ save = \"x\" },\n" +
                                      "{ load = \"x\" }]\ncase = [{ " + ours + " }]\n");
    const auto ended_by = [&](const auto& exception) {
        const Verdict verdict = execute(file.runs.front(), [&](const std::string& label, auto) {
            if (label == "save") {
                throw exception;
            }
        });
        EXPECT_EQ(verdict.status, Status::fail);
        EXPECT_EQ(verdict.headline, "save.runs");
        for (const Check& check : verdict.checks) {
            if (check.path == "save.runs") {
                EXPECT_EQ(check.at.line, 8);
                return check.summary;
            }
        }
        return std::string();
    };
    EXPECT_EQ(ended_by(std::runtime_error("boom")), "rank 0: save: boom");
    EXPECT_EQ(ended_by(std::bad_alloc()),
              "rank 0: save: this machine has not enough memory for it");
    EXPECT_THAT(ended_by(std::system_error(std::make_error_code(std::errc::io_error), "pread")),
                HasSubstr("rank 0: save: the system refused: pread: Input/output error"));
    EXPECT_EQ(ended_by(sim::DeviceError("broken")), "rank 0: broken");
}

TEST(Play, ASaveThatFailedIsNotThereToLookAt) {
    const Verdict verdict = verdict_of(
        "{ train = 1 }, { save = \"x\", fault = { at = \"mkdir\" }, expect.error = { naming = "
        "[\"rank 0\"], kind = \"storage\" } }, "
        "{ train = 1, expect.cover = { in = \"x\", missing = 0 } }",
        "specimen = [], fails = [\"train-2.cover.missing\"]");
    EXPECT_EQ(verdict.status, Status::caught) << why(verdict);
    EXPECT_THAT(verdict.headline, HasSubstr("\"x\" cannot be read"));
}

TEST(Play, KeepsSavesOnDiskApartAndRemovesThem) {
    const tests::TemporaryDirectory home;
    const char* before = std::getenv("TMPDIR");
    const std::string usual = before != nullptr ? before : "/tmp";
    ::setenv("TMPDIR", home.path().c_str(), 1);
    const Verdict verdict = verdict_of(
        "{ train = 2 }, { save = \"ckpt\", expect.files.present = [\".metadata\", \"*.distcp\"] }, "
        "{ restart.world.size = 1 }, { load = \"ckpt\", expect.everything.same_as = "
        "\"uninterrupted\" }",
        ours, "storage.kind = \"posix\"\n");
    ::setenv("TMPDIR", usual.c_str(), 1);
    EXPECT_EQ(verdict.status, Status::pass) << why(verdict);
    EXPECT_TRUE(std::filesystem::is_empty(home.path()));
}

TEST(Play, EditsAndDamagesWhatIsSaved) {
    const Verdict edited = verdict_of(
        "{ train = 2 }, { save = { to = \"x\", via = \"memory\" } }, "
        "{ edit = { in = \"x\", of = \"a\", key = \"exp_avg\", set = 0.5 } }, "
        "{ load = \"x\", expect.moments = { of = \"a\", key = \"exp_avg\", is = 0.5 } }, "
        "{ edit = { in = \"x\", group = 0, key = \"lr\", set = 0.25 } }, "
        "{ load = \"x\", expect.groups.is = { lr = 0.25 } }, "
        "{ edit = { in = \"x\", of = \"a\", key = \"exp_avg\", shape = [4, 3] } }, "
        "{ load = \"x\", expect.refused.naming = [\"a\", \"exp_avg\", \"[4, 3]\", \"[5, 3]\"] }",
        ours);
    EXPECT_EQ(edited.status, Status::pass) << why(edited);
    const Verdict damaged = verdict_of(
        "{ train = 2 }, { save = \"x\" }, "
        "{ edit = { in = \"x\", of = \"a\", key = \"exp_avg\", set = 0.5 } }, "
        "{ load = \"x\", expect.moments = { of = \"a\", key = \"exp_avg\", is = 0.5 } }, "
        "{ damage = { in = \"x\", of = \"a\", truncate = \"10 B\" } }, "
        "{ load = \"x\", expect.error = { naming = [\"a\"] } }",
        ours);
    EXPECT_EQ(damaged.status, Status::pass) << why(damaged);
}

TEST(Play, SetsAndSchedulesReachTheGroups) {
    const Verdict verdict = verdict_of(
        "{ train = { steps = 2, lr = [0.5, 0.125] }, expect.groups.is = { lr = 0.125 } }, "
        "{ set = { param = \"b\", weight_decay = 0.0 }, expect.groups.is = { weight_decay = 0.0 } "
        "}, { set = { group = 0, lr = 0.0 } }, { train = 1, expect.params.same_as = \"before\" }",
        ours);
    EXPECT_EQ(verdict.status, Status::pass) << why(verdict);
}

TEST(Play, AddsGroupsInTheRunningProcess) {
    const Verdict verdict = verdict_of(
        "{ train = 1 }, { add_param_group = { lr = 0.1, params = [{ name = \"late\", shape = [9] "
        "}] } }, { train = 2, expect = { steps.is = { a = 3, late = 2 }, device.peak = [\"1 "
        "resident\", \"1 ring\"], everything.same_as = \"adamw\" } }",
        ours);
    EXPECT_EQ(verdict.status, Status::pass) << why(verdict);
}

TEST(Play, ConstructionIsMeasuredByRestart) {
    const Verdict verdict = verdict_of(
        "{ restart = {}, expect.device.peak = \"1 resident\" }",
        "specimen = [\"device_init\"], fails = [{ expect = \"restart.device.peak\", found = "
        "[\"1 resident\", \"36 B\"] }]");
    EXPECT_EQ(verdict.status, Status::caught) << why(verdict);
}

TEST(Play, ALoadGoesBackToTheStepOfItsSave) {
    const Verdict verdict = verdict_of(
        "{ train = 3 }, { save = \"x\" }, { train = 2 }, "
        "{ load = \"x\", expect.everything.same_as = \"save\" }, "
        "{ train = 1, expect = { everything.same_as = \"uninterrupted\", steps.is = 4 } }",
        ours);
    EXPECT_EQ(verdict.status, Status::pass) << why(verdict);
}

TEST(Play, WhatAProcessLeavesBehindIsAFindingOfTheRestart) {
    const Verdict verdict =
        verdict_of("{ train = 1 }, { restart = {}, expect.findings.is = [\"leak\"] }", ours);
    EXPECT_EQ(verdict.status, Status::fail);
    EXPECT_THAT(why(verdict), HasSubstr("findings: expected leak, found none"));
}

TEST(Docs, TheirWholeFileRuns) {
    std::ifstream in(std::string(SWAPLAB_SOURCE_DIR) + "/docs/scenarios.md");
    std::stringstream page;
    page << in.rdbuf();
    const std::string text = page.str();
    const std::size_t begin = text.find("```toml\n") + 8;
    const ScenarioFile file =
        parse_scenario("it.toml", text.substr(begin, text.find("```", begin) - begin));
    ASSERT_EQ(file.runs.size(), 4U);
    for (const auto& run : file.runs) {
        const Verdict verdict = execute(run);
        EXPECT_TRUE(verdict.status == Status::pass || verdict.status == Status::caught)
            << why(verdict);
    }
}

TEST(SeededValues, AreTheSameInEveryWorldAndNeverRepeat) {
    std::set<float> seen;
    for (std::int64_t step = 1; step <= 50; ++step) {
        for (std::int64_t index = 0; index < 50; ++index) {
            seen.insert(seeded_gradient(1, "a", index, step));
        }
    }
    EXPECT_GT(seen.size(), 2490U);
    EXPECT_EQ(seeded_gradient(1, "a", 7, 3), seeded_gradient(1, "a", 7, 3));
    EXPECT_NE(seeded_gradient(1, "a", 7, 3), seeded_gradient(2, "a", 7, 3));
    EXPECT_NE(seeded_gradient(1, "a", 7, 3), seeded_gradient(1, "b", 7, 3));
}

TEST(SeededValues, GlobalIndicesFollowTheBox) {
    EXPECT_THAT(global_indices({4, 3}, {{1, 1}, {2, 2}}), testing::ElementsAre(4, 5, 7, 8));
    EXPECT_THAT(global_indices({}, {{}, {}}), testing::ElementsAre(0));
    EXPECT_THAT(global_indices({0, 2}, {{0, 0}, {0, 2}}), IsEmpty());
    EXPECT_EQ(index_text({4, 3}, 7), "[2,1]");
}

TEST(GradientFiles, AreReadAsBits) {
    const GradientFile file(std::string(SWAPLAB_TEST_DATA) + "/scenario/gradients.json");
    EXPECT_THAT(file.at(2, "b", 2), testing::ElementsAre(1.0F, -2.0F));
    EXPECT_THROW((void)file.at(3, "b", 2), sim::ArgumentError);
    EXPECT_THROW((void)file.at(1, "b", 3), sim::ArgumentError);
    EXPECT_THROW((void)file.at(1, "x", 2), sim::ArgumentError);
    EXPECT_THROW(GradientFile("no/such.json"), sim::StorageError);
}

}  // namespace
}  // namespace swaplab::harness::scenario
