/// Every scenario as fibers, threads and processes: the same bits, figures and verdicts.

#include "scenario/judge/verdict.hpp"
#include "scenario/language/scenario_file.hpp"
#include "scenario/language/selection.hpp"
#include "scenario/play/rank_record.hpp"
#include "support/temporary_directory.hpp"

#include <fmt/format.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <set>
#include <sys/wait.h>
#include <unistd.h>

namespace swaplab::harness::scenario {
namespace {

using ::testing::HasSubstr;

#if defined(__SANITIZE_THREAD__)  // has a thread of its own: no process world
const std::vector<std::string> kinds{"fiber", "thread"};
#else
const std::vector<std::string> kinds{"fiber", "thread", "process"};
#endif

Overrides in_world(const std::string& kind) {
    Overrides overrides;
    overrides.world_kind = kind;
    return overrides;
}

void move_to(sim::WorldKind kind, Run& run) {
    run.start.world_kind = kind;
    for (Step& step : run.steps) {
        step.before.world_kind = kind;
        step.after.world_kind = kind;
    }
}

/// How a run ends, in words that say which differs.
std::string end_of(Run run, sim::WorldKind kind) {
    move_to(kind, run);
    const Verdict verdict = execute(run);
    std::string out = fmt::format("{} {:016x}", name_of(verdict.status), verdict.digest);
    for (const Check& check : verdict.checks) {
        out += fmt::format("\n{} {}{} {}", check.path, check.reached ? "" : "not ",
                           check.ok ? "held" : "failed", check.measured.value_or(-1));
    }
    return out;
}

class InWorlds : public ::testing::TestWithParam<std::string> {};

std::vector<std::string> shipped() {
    std::vector<std::string> paths;
    for (const Selection& selection : select_scenarios({SWAPLAB_SOURCE_DIR "/scenarios"})) {
        paths.push_back(selection.file);
    }
    return paths;
}

INSTANTIATE_TEST_SUITE_P(Shipped, InWorlds, ::testing::ValuesIn(shipped()), [](const auto& one) {
    const std::filesystem::path path = one.param;
    return path.parent_path().filename().string() + "_" + path.stem().string();
});

TEST_P(InWorlds, StatesFiguresAndVerdictsAreEqual) {
    std::set<std::pair<int, int>> cases;  // by their places in the file
    for (const scenario::Run& run : load_scenario(GetParam()).runs) {
        if (run.start.world_kind != sim::WorldKind::fiber) {
            continue;  // another cell of the same run
        }
        const std::string fibers = end_of(run, sim::WorldKind::fiber);
        EXPECT_EQ(end_of(run, sim::WorldKind::thread), fibers) << run.name;
#if !defined(__SANITIZE_THREAD__)
        // Processes cost more than the rest together: one cell of each case.
        if (cases.emplace(run.which.at.line, run.which.at.column).second) {
            EXPECT_EQ(end_of(run, sim::WorldKind::process), fibers) << run.name;
        }
#endif
    }
}

Run run_of(const std::string& steps, const std::string& kind, const std::string& more = "") {
    const ScenarioFile file = parse_scenario(
        "it.toml",
        "scenario.name = \"n\"\nscenario.why = \"w\"\nworld.size = 3\n" + more +
            "param = [{ name = \"a\", shape = [7, 3], placements = [\"Shard(0)\"] }]\nstep = [" +
            steps + "]\ncase = [{ optimizer = \"swap_adamw\", verdict = \"passes\" }]\n",
        in_world(kind));
    for (const Diagnostic& diagnostic : file.diagnostics.all()) {
        ADD_FAILURE() << format(diagnostic, file.path, file.source);
    }
    return file.runs.at(0);
}

TEST(Worlds, DictsInMemoryOutliveTheirProcessesAndAreEditedThere) {
    for (const std::string& kind : kinds) {
        const Verdict verdict = execute(run_of(
            "{ train = 2 }, { save = { to = \"m\", via = \"memory\" } }, { restart = {} }, "
            "{ load = \"m\", expect.everything.same_as = \"uninterrupted\" }, "
            "{ edit = { in = \"m\", of = \"a\", key = \"exp_avg\", set = 1.0 }, "
            "expect.moments = { differs_from = \"m\", key = \"exp_avg\" } }, { restart = {} }, "
            "{ load = \"m\", expect = [{ moments = { is = 1.0, key = \"exp_avg\" } }, "
            "{ params.same_as = \"m\" }] }",
            kind));
        EXPECT_EQ(verdict.status, Status::pass) << kind << ": " << verdict.headline;
    }
}

TEST(Worlds, ADeathThatNobodyPlannedFailsTheRunAndSaysWhere) {
    for (const std::string& kind : kinds) {
        const Verdict verdict = execute(
            run_of("{ train = 1 }, { save = \"x\", fault = { at = \"write\", rank = 1, then = "
                   "\"kill\" } }, { restart = {} }, { load = \"x\" }",
                   kind));
        EXPECT_EQ(verdict.status, Status::fail) << kind;
        const auto lost = std::find_if(verdict.checks.begin(), verdict.checks.end(),
                                       [](const Check& check) { return !check.ok; });
        EXPECT_EQ(lost->path, "save.runs");
        EXPECT_THAT(lost->summary, HasSubstr("rank 1 did not end the step: rank 1 of 3 lost: "));
        EXPECT_THAT(lost->summary, HasSubstr("last seen"));
    }
}

#if !defined(__SANITIZE_THREAD__)

/// Directories of runs below `directory`, which TMPDIR names.
std::size_t directories_left(const std::string& directory) {
    return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(directory),
                                                  std::filesystem::directory_iterator()));
}

TEST(Worlds, AnErrorThatComesTooLateFails) {
    const Verdict verdict = execute(run_of(
        "{ save = \"x\" }, { save = \"x\", fault = { at = \"write\", rank = 1, then = \"stop\" }, "
        "expect.error = { kind = \"rank_lost\", naming = [\"rank 1\"], on = \"survivors\", "
        "within = \"1 ms\" } }, { restart = {} }, { load = \"x\" }",
        "process", "scenario.timeout = \"400 ms\"\n"));
    const auto late = std::find_if(verdict.checks.begin(), verdict.checks.end(),
                                   [](const Check& check) { return !check.ok; });
    ASSERT_NE(late, verdict.checks.end());
    EXPECT_EQ(late->path, "save-2.error");
    EXPECT_THAT(late->summary, HasSubstr("the error came after "));
}

TEST(Worlds, ARunWhoseProcessesWereKilledIsSweptByTheNext) {
    const tests::TemporaryDirectory home;
    const auto run = run_of("{ train = 1 }, { save = \"x\" }, { load = \"x\" }", "process");
    const pid_t launcher = ::fork();
    ASSERT_GE(launcher, 0);
    if (launcher == 0) {
        ::setenv("TMPDIR", home.path().c_str(), 1);
        static_cast<void>(execute(run, [](const std::string&, std::int64_t) { ::raise(SIGKILL); }));
        ::_exit(1);
    }
    int status = 0;
    ::waitpid(launcher, &status, 0);
    ASSERT_TRUE(WIFSIGNALED(status));
    EXPECT_EQ(directories_left(home.path()), 1U);
    const pid_t next = ::fork();
    if (next == 0) {
        ::setenv("TMPDIR", home.path().c_str(), 1);
        ::_exit(execute(run).status == Status::pass ? 0 : 1);
    }
    ::waitpid(next, &status, 0);
    EXPECT_EQ(status, 0);
    EXPECT_EQ(directories_left(home.path()), 0U);
}

#endif

TEST(Journal, APartThatWasNotWrittenWholeIsLeftOut) {
    const tests::TemporaryDirectory home;
    const std::string path = home.path() + "/journal";
    RankRecord record;
    record.saves["x"].dict.state.param_groups.push_back({{{"lr", 0.5}}, true});
    record.steps[0].after.params["a"].bytes.resize(5, std::byte{7});
    {
        RecordJournal journal(path);
        journal.write_at(record);
        journal.write_saved(record, "x");
        journal.write_step(record);
        record.reached_end = true;
        journal.write_end(record);
    }
    std::size_t parts_before = 4;
    for (auto size = std::filesystem::file_size(path) + 1; size-- > 0;) {
        std::filesystem::resize_file(path, size);
        RankRecord found;
        read_journal(path, found);
        const std::size_t parts = found.steps.count(0) + found.saves.size() +
                                  found.steps[0].after.params.size() + (found.reached_end ? 1 : 0);
        EXPECT_LE(parts, parts_before) << size << " bytes";
        EXPECT_GE(parts + 1, parts_before) << size << " bytes";
        parts_before = parts;
    }
    EXPECT_EQ(parts_before, 0U);
    RankRecord absent;
    read_journal(home.path() + "/absent", absent);
    EXPECT_TRUE(absent.steps.empty());
}

}  // namespace
}  // namespace swaplab::harness::scenario
