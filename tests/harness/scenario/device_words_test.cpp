// Words of the language that speak of devices, memory, copies and faults.

#include "story.hpp"

#include <gmock/gmock.h>

namespace swaplab::harness::scenario {
namespace {

using testing::HasSubstr;
using testing::Not;

const Check& check_of(const Verdict& verdict, const std::string& path) {
    static const Check none;
    for (const Check& check : verdict.checks) {
        if (check.path == path) {
            return check;
        }
    }
    ADD_FAILURE() << "no check " << path;
    return none;
}

std::int64_t measured(const std::string& steps, const std::string& path) {
    return check_of(verdict_of(steps, ours), path).measured.value_or(-1);
}

TEST(Schedules, RunTheSameStory) {
    for (const char* schedule : {"fifo", "random", "latest", "pct"}) {
        Overrides overrides;
        overrides.set = {{"device.schedule", schedule}};
        const Verdict verdict =
            verdict_of("{ train = 2, expect.everything.same_as = \"adamw\" }", ours, "", overrides);
        EXPECT_EQ(verdict.status, Status::pass) << schedule << why(verdict);
    }
}

TEST(LateFaults, BreakTheirStepAndEveryLaterOne) {
    const std::string broken =
        "expect.error = { kind = \"device\", naming = [\"rank 1\"], on = [1], leaves = "
        "\"anything\" }";
    const std::string fault = "fault = { at = \"launch\", rank = 1, then = \"late\" }, ";
    const Verdict verdict = verdict_of("{ train = 1, " + fault + broken + " }, { train = 1, " +
                                           broken + " }, { restart = {} }, { train = 1 }",
                                       ours);
    EXPECT_EQ(verdict.status, Status::pass) << why(verdict);
}

TEST(DiskFaults, CarryWhatTheSystemSays) {
    struct Case {
        const char* then;
        const char* says;
    };
    for (const Case& one : {Case{"eio", "the disk failed"}, Case{"enospc", "no space left"},
                            Case{"short", "2 of 4 B"}}) {
        const Verdict verdict = verdict_of(
            std::string("{ train = 1 }, { save = \"x\", fault = { at = \"write\", over = \"3 B\", "
                        "then = \"") +
                one.then +
                "\" }, expect.error = { kind = \"storage\", naming = [\"no such words\"] } }, "
                "{ load = \"x\", expect.error.naming = \"x\" }",
            ours);
        const std::string text = why(verdict);
        EXPECT_EQ(verdict.status, Status::fail);
        EXPECT_FALSE(verdict.refused_by_machine) << one.then;
        EXPECT_THAT(text,
                    HasSubstr(one.then == std::string("short") ? " B: the scenario" : one.says));
    }
}

TEST(DiskFaults, OfOneFileLeaveTheOthersAlone) {
    const auto save = [](const std::string& file) {
        return verdict_of("{ train = 1 }, { save = \"x\", fault = { at = \"write\", file = \"" +
                              file +
                              "\" }, expect.error = { naming = [\"rank 0\"] } }, "
                              "{ load = \"x\", expect.error.naming = \"x\" }",
                          ours);
    };
    EXPECT_EQ(save("*.distcp").status, Status::pass) << why(save("*.distcp"));
    EXPECT_EQ(save("*_0.distcp").status, Status::pass);
    EXPECT_THAT(why(save("no such")), HasSubstr("the fault did not happen"));
}

Verdict alone(const std::string& steps) {
    Overrides one_rank;
    one_rank.world = 1;
    return verdict_of(steps, ours, "", one_rank);
}

TEST(EachPass, IsOneRunPerPass) {
    const Verdict verdict = alone(
        "{ train = 1, fault = { at = \"device_alloc\", nth = \"each\" }, "
        "expect.error = { kind = \"out_of_memory\", naming = [\"rank 0\"] } }, "
        "{ train = 1, expect.everything.same_as = \"uninterrupted\" }");
    EXPECT_EQ(verdict.status, Status::pass) << why(verdict);
    EXPECT_THAT(check_of(verdict, "train.error").summary, HasSubstr("at each of 3 passes"));
}

TEST(EachPass, FailsWithTheFirstPassThatFails) {
    // The first launches make gradients; one that comes later leaves a step half done.
    const Verdict verdict = alone(
        "{ train = 1, fault = { at = \"launch\", nth = \"each\" }, "
        "expect.error = { kind = \"device\", naming = [\"rank 0\"] } }");
    EXPECT_EQ(verdict.status, Status::fail);
    const std::string& summary = check_of(verdict, "train.error").summary;
    EXPECT_THAT(summary, HasSubstr("pass "));
    EXPECT_THAT(summary, Not(HasSubstr("pass 1 of")));
}

TEST(EachPass, OfAPointThatIsNeverPassedFails) {
    const Verdict verdict =
        verdict_of("{ train = 1, fault = { at = \"rename\", nth = \"each\" } }", ours);
    EXPECT_EQ(verdict.status, Status::fail);
    EXPECT_THAT(why(verdict), HasSubstr("the fault did not happen"));
}

TEST(Traffic, IsCountedByKind) {
    EXPECT_EQ(measured("{ train = 2, expect.d2d.bytes = \"0 B\" }", "train.d2d.bytes"), 0);
    EXPECT_GT(measured("{ train = 2, expect.syncs.count = 1 }", "train.syncs.count"), 0);
    const std::string saved =
        "{ train = 1 }, { save = \"x\", expect = [{ written.bytes = \"1 B\" }, "
        "{ written.count = 1 }, { read.count = 1 }] }, { load = \"x\" }";
    EXPECT_GT(measured(saved, "save.written.bytes"), 0);
    EXPECT_GT(measured(saved, "save.written.count"), 0);
    const std::string loaded =
        "{ train = 1 }, { save = \"x\" }, { load = \"x\", expect = [{ "
        "read.bytes = \"1 B\" }, { written.count = 1 }] }";
    EXPECT_GT(measured(loaded, "load.read.bytes"), 0);
    EXPECT_EQ(measured(loaded, "load.written.count"), 0);
}

TEST(Traffic, SinceALabelIsTheSumOfTheStepsAfterIt) {
    const std::string two =
        "{ train = 1, expect.h2d.bytes = \"1 moments\" }, "
        "{ train = 1, label = \"b\", expect.h2d = { since = \"train\", bytes = "
        "\"1 moments\" } }, { train = 1, label = \"c\", expect.h2d = { since = "
        "\"train\", bytes = \"2 moments\" } }";
    const Verdict verdict = verdict_of(two, ours);
    EXPECT_EQ(verdict.status, Status::pass) << why(verdict);
}

TEST(Memory, SinceALabelHasThePeakOfAllStepsAndTheBeforeOfTheFirst) {
    const Verdict verdict = verdict_of(
        "{ train = 1 }, { hold = { name = \"x\", bytes = \"4 KiB\" } }, "
        "{ release = \"x\", expect.device = { since = \"train\", rise = \"4 KiB\", kept = \"0 B\" "
        "} }",
        ours);
    EXPECT_EQ(verdict.status, Status::pass) << why(verdict);
}

TEST(Memory, SlopeIsTheLargestGrowthOfARoundAfterTheFirst) {
    const std::string steps =
        "{ hold = { name = \"first\", bytes = \"1 KiB\" } }, "
        "{ repeat = 4, do = [{ train = 1 }], expect.device.slope = \"0 B\" }";
    const Verdict flat = verdict_of(steps, ours);
    EXPECT_EQ(flat.status, Status::pass) << why(flat);
    const Verdict leaking = verdict_of(
        "{ repeat = 4, do = [{ train = 1 }], expect.device.slope = "
        "\"1 moments\" }",
        "specimen = [\"slots_leak\"], verdict = \"passes\"");
    EXPECT_EQ(leaking.status, Status::pass) << why(leaking);
}

TEST(Rounds, AreStepsWithLabelsOfTheirOwn) {
    const Verdict verdict = verdict_of(
        "{ repeat = 3, do = [{ train = 1, label = \"go\" }, { train = 1 }] }, "
        "{ train = 1, expect.steps.is = 7, expect.params.differs_from = \"go-3\" }",
        ours);
    EXPECT_EQ(verdict.status, Status::pass) << why(verdict);
    EXPECT_TRUE(check_of(verdict, "go-2.runs").ok);
    EXPECT_TRUE(check_of(verdict, "train-4.runs").ok);
    EXPECT_TRUE(check_of(verdict, "repeat.runs").ok);
}

TEST(Memory, ThatIsHeldIsOnTheLedgerUntilItIsReleased) {
    for (const char* kind : {"device", "pinned", "host"}) {
        const std::string memory = kind;
        const Verdict verdict = verdict_of(
            "{ hold = { name = \"x\", bytes = [\"1 params\", \"8 B\"], memory = \"" + memory +
                "\" }, expect." + memory +
                " = { tag = \"x\", kept = [\"1 params\", \"8 B\"] } }, " +
                "{ release = \"x\", expect." + memory +
                ".kept = [\"-1 params\", \"-8 B\"] }, { hold = { name = \"y\", bytes = \"8 B\" } }",
            ours);
        EXPECT_EQ(verdict.status, Status::pass) << kind << why(verdict);
    }
}

TEST(Allocators, ReserveWhatTheyDoNotHandOut) {
    const std::string steps =
        "{ hold = { name = \"x\", bytes = \"12 MiB\" }, expect.device.reserved.kept = \"12 MiB\" "
        "}, "
        "{ release = \"x\", expect.device = { kept = \"-12 MiB\", reserved.kept = \"0 B\" } }";
    Overrides caching;
    caching.set = {{"device.allocator", "caching"}};
    const Verdict kept = verdict_of(steps, ours, "", caching);
    EXPECT_EQ(kept.status, Status::pass) << why(kept);
    const Verdict raw = verdict_of(steps, ours);
    EXPECT_EQ(check_of(raw, "release.device.reserved.kept").measured, -(std::int64_t{12} << 20U));
}

TEST(Allocators, PinnedMemoryHasAQuotaAndAPolicy) {
    const std::string steps =
        "{ hold = { name = \"x\", bytes = \"5 KiB\", memory = \"pinned\" }, "
        "expect.pinned.reserved.kept = \"8 KiB\" }, "
        "{ release = \"x\", expect.pinned.reserved.kept = \"-8 KiB\" }, "
        "{ hold = { name = \"y\", bytes = \"64 KiB\", memory = \"pinned\" }, "
        "expect.error = { kind = \"out_of_memory\", naming = [\"pinned\", \"y\"] } }";
    Overrides limited;
    limited.set = {{"host.pinned", "\"64 KiB\""}};
    const Verdict exact = verdict_of(steps, ours, "", limited);
    EXPECT_EQ(exact.status, Status::pass) << why(exact);
    limited.set.emplace_back("host.pinned_policy", "power_of_two");
    const Verdict kept = verdict_of(steps, ours, "", limited);
    EXPECT_EQ(check_of(kept, "release.pinned.reserved.kept").measured, 0);
}

TEST(Memory, OccupiedOutlastsTheFreeUntilTheWorkBeforeItHasRun) {
    const std::string steps =
        "{ train = 1, expect.device.occupied = { peak = [\"1 resident\", \"1 ring\"], "
        "kept = \"1 B\" } }";
    Overrides latest;
    latest.set = {{"device.schedule", "latest"}};
    const Verdict verdict = verdict_of(steps, ours, "", latest);
    EXPECT_TRUE(check_of(verdict, "train.device.occupied.peak").ok) << why(verdict);
    EXPECT_GT(check_of(verdict, "train.device.occupied.kept").measured.value_or(0), 0);
}

}  // namespace
}  // namespace swaplab::harness::scenario
