#include "command_fixture.hpp"

#include <nlohmann/json.hpp>

#include <filesystem>
#include <sys/stat.h>

namespace swaplab::harness {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST_F(Command, WithoutArgumentsPrintsHelpAndExits2) {
    const Ran ran = run("");
    EXPECT_EQ(ran.exit, 2);
    EXPECT_THAT(ran.out, HasSubstr("swaplab run scenarios/ --junit report.xml"));
    EXPECT_EQ(run("--help").exit, 0);
    EXPECT_THAT(run("help exit-codes").out, HasSubstr("a rank hung"));
    EXPECT_THAT(run("--version").out, HasSubstr("instruction set"));
}

TEST_F(Command, NamesTheNearestCommand) {
    const Ran ran = run("inspcet x");
    EXPECT_EQ(ran.exit, 2);
    EXPECT_THAT(ran.out, HasSubstr("unknown command \"inspcet\"; nearest: inspect"));
}

TEST_F(Command, ExitCodesSayWhatHappened) {
    write("good.toml", good + passes);
    write("bad.toml", "scenario.nam = 'n'\n");
    write("fails.toml",
          "scenario.name = 'n'\nscenario.why = 'w'\n"
          "param = [{ name = 'a', shape = [4] }]\n"
          "step = [{ train = 1, expect.device.peak = '1 B' }]\n" +
              passes);
    EXPECT_EQ(run("run good.toml").exit, 0);
    EXPECT_EQ(run("run fails.toml").exit, 1);
    EXPECT_EQ(run("run bad.toml").exit, 2);
    EXPECT_EQ(run("lint bad.toml").exit, 2);
    EXPECT_EQ(run("run --nonsense").exit, 2);
    EXPECT_EQ(run("run good.toml --set x").exit, 2);
    EXPECT_EQ(run("run 'good[adamw]'").exit, 2);
    EXPECT_EQ(run("run missing.toml").exit, 4);
    EXPECT_EQ(run("run good.toml --junit no/such/dir.xml").exit, 4);
    const Ran all = run("run good.toml bad.toml");
    EXPECT_EQ(all.exit, 2);
    EXPECT_THAT(all.out, Not(HasSubstr("PASS")));  // found before anything runs
}

TEST_F(Command, ResultsThatCannotBeWrittenExit4) {
    EXPECT_EQ(run("--version >/dev/full").exit, 4);
}

TEST_F(Command, AShapesFileOfAnotherFormIsRefusedInOurWords) {
    for (const char* text : {"{\"a\": 1}", "{\"a\": [\"x\"]}", "{\"a\": [1e30]}", "{\"a\": [-1]}",
                             "{\"a\": [18446744073709551615]}", "[]", "", "{\"a\": [1"}) {
        write("shapes.json", text);
        const Ran ran = run("inspect . --against shapes.json");
        EXPECT_EQ(ran.exit, 2) << text;
        EXPECT_THAT(ran.out, HasSubstr("shapes.json is no shapes file")) << text;
        EXPECT_THAT(ran.out, testing::Not(HasSubstr("exception"))) << text;
    }
}

TEST_F(Command, AMissingCheckpointIsAProblemOfTheFile) {
    write("it.toml",
          "scenario.name = 'n'\nscenario.why = 'w'\n"
          "param = [{ name = 'a', shape = [4] }]\n"
          "checkpoint = [{ name = 'given', path = 'no/such' }]\n"
          "step = [{ load = 'given' }]\n" +
              passes);
    const Ran ran = run("run it.toml");
    EXPECT_EQ(ran.exit, 2);
    EXPECT_THAT(ran.out, HasSubstr("it.toml:4:33: error[no-such-file]: no directory \"no/such\""));
}

TEST_F(Command, ADirectoryThatNoSaveWroteIsNoCheckpoint) {
    for (const char* path : {"..", ".", "/proc/self"}) {
        write("it.toml",
              "scenario.name = 'n'\nscenario.why = 'w'\n"
              "param = [{ name = 'a', shape = [4] }]\n"
              "checkpoint = [{ name = 'given', path = '" +
                  std::string(path) + "' }]\nstep = [{ load = 'given' }]\n" + passes);
        const Ran ran = run("lint it.toml");
        EXPECT_EQ(ran.exit, 2) << path;
        EXPECT_THAT(ran.out, HasSubstr("it.toml:4:33: error[no-checkpoint]: \"" +
                                       std::string(path) + "\" is no checkpoint"));
        EXPECT_THAT(ran.out, HasSubstr("give the directory that a save wrote"));
    }
}

TEST_F(Command, OnlyTheFilesOfACheckpointAreCopied) {
    write("it.toml",
          "scenario.name = 'n'\nscenario.why = 'w'\n"
          "param = [{ name = 'a', shape = [4] }]\n"
          "checkpoint = [{ name = 'given', path = 'given' }]\n"
          "step = [{ load = 'given', expect.error = { naming = ['given/.metadata'], kind = "
          "'corrupt' } }]\n" +
              passes);
    std::filesystem::create_directory(path("given"));
    std::filesystem::create_directory_symlink(".", path("given/loop"));
    std::filesystem::create_directory_symlink(".", path("given/loop2"));
    ASSERT_EQ(::mkfifo(path("given/pipe").c_str(), 0600), 0);
    write("given/.metadata", "x");
    const Ran ran = run("run it.toml");
    EXPECT_EQ(ran.exit, 0) << ran.out;
}

TEST_F(Command, NothingToRunExits3) {
    write("note.txt", "x");
    const Ran ran = run("run .");
    EXPECT_EQ(ran.exit, 3);
    EXPECT_THAT(ran.out, HasSubstr("nothing ran: no *.toml under ."));
    EXPECT_THAT(ran.out, HasSubstr("0 passed, 0 failed, 0 skipped"));
}

TEST_F(Command, AFailureEndsWithTheLineThatRepeatsIt) {
    write("it.toml",
          "scenario.name = 'n'\nscenario.why = 'w'\n"
          "param = [{ name = 'a', shape = [4] }]\n"
          "step = [{ train = 1, expect.device.peak = '95 B' }]\n" +
              passes);
    const Ran ran = run("run it.toml --seed 7 --color never");
    EXPECT_THAT(ran.out, HasSubstr("device peak 64 B (bound 95 B)"));
    EXPECT_THAT(ran.out, HasSubstr("again    swaplab run 'it[swap_adamw]' --seed 7\n"));
    EXPECT_THAT(ran.out, HasSubstr("0 passed, 1 failed, 0 skipped"));
    EXPECT_EQ(run("run 'it[swap_adamw]' --seed 7").exit, 1);
}

TEST_F(Command, WritesJsonAndJunitThatReadBack) {
    write("it.toml", good + passes);
    const Ran ran = run("run it.toml --json --junit report.xml");
    const auto json = nlohmann::json::parse(ran.out);
    EXPECT_EQ(json["schema"], "swaplab.run/1");
    EXPECT_EQ(json["passed"], 1);
    EXPECT_EQ(json["runs"][0]["status"], "pass");
    EXPECT_EQ(json["runs"][0]["checks"][0]["measured"], 64);
    const std::string xml = read("report.xml");
    EXPECT_THAT(xml, HasSubstr("<testsuites tests=\"1\" failures=\"0\" skipped=\"0\""));
    EXPECT_THAT(xml, HasSubstr("name=\"it[swap_adamw]\""));
    EXPECT_EQ(nlohmann::json::parse(run("lint it.toml --json").out)["errors"], 0);
    EXPECT_EQ(nlohmann::json::parse(run("list it.toml --json").out)["scenarios"][0]["id"], "it");
}

TEST_F(Command, PrintsTheSameResultsTwice) {
    write("it.toml", good + passes);
    const auto digest = [](const std::string& out) {
        const std::size_t at = out.find("digest ");
        return out.substr(at, 15);
    };
    EXPECT_EQ(digest(run("run it.toml").out), digest(run("run it.toml").out));
    EXPECT_NE(digest(run("run it.toml").out), digest(run("run it.toml --seed 2").out));
}

TEST_F(Command, ColoursOnlyWhenAsked) {
    write("it.toml", good + passes);
    EXPECT_THAT(run("run it.toml").out, Not(HasSubstr("\x1b[")));
    EXPECT_THAT(run("run it.toml --color always").out, HasSubstr("\x1b[32m"));
}

TEST_F(Command, InvertTurnsEveryExpectationRed) {
    write("it.toml", good + passes);
    const Ran ran = run("run it.toml --invert");
    EXPECT_EQ(ran.exit, 0);
    EXPECT_THAT(ran.out, HasSubstr("4 of 4 opposites turned red"));
}

TEST_F(Command, ExplainsWithoutRunning) {
    write("it.toml", good + passes);
    const Ran ran = run("explain it.toml");
    EXPECT_EQ(ran.exit, 0);
    EXPECT_THAT(ran.out, HasSubstr("1 training step"));
    EXPECT_THAT(ran.out, HasSubstr("64 B on rank 0"));
}

TEST_F(Command, RanksMayBeFibersThreadsOrProcesses) {
    write("good.toml", good + passes);
    for (const std::string kind : {"thread", "process"}) {
        const Ran ran = run("run good.toml --json --world " + kind + " --world 2");
        EXPECT_EQ(ran.exit, 0) << ran.out;
        EXPECT_THAT(ran.out, HasSubstr(R"("--world","2","--world",")" + kind));
    }
    write("both.toml", good + passes + "matrix = { world.kind = ['thread', 'process'] }\n");
    EXPECT_THAT(run("run both.toml -v").out, HasSubstr("both[swap_adamw, world.kind=process]"));
}

TEST_F(Command, AStepBeyondItsTimeLimitIsAHang) {
    write("it.toml",
          "scenario.name = 'n'\nscenario.why = 'w'\nscenario.timeout = '1 ms'\n"
          "param = [{ name = 'a', shape = [64] }]\n"
          "step = [{ train = 100000 }]\n" +
              passes);
    const Ran ran = run("run it.toml");
    EXPECT_EQ(ran.exit, 5);
    EXPECT_THAT(ran.out, HasSubstr("HANG"));
}

TEST_F(Command, AStepThatNeverEndsLeavesEverythingThatWasFoundBefore) {
    write("good.toml", good + passes);
    write("hangs.toml",
          "scenario.name = 'n'\nscenario.why = 'w'\nscenario.timeout = '1 ms'\n"
          "param = [{ name = 'a', shape = [1000000] }]\n"
          "step = [{ train = 100000 }]\n" +
              passes);
    const Ran ran = run("run good.toml hangs.toml good.toml --json --junit report.xml");
    EXPECT_EQ(ran.exit, 5);
    const auto json = nlohmann::json::parse(ran.out);
    EXPECT_EQ(json["exit"], 5);
    EXPECT_EQ(json["passed"], 1);
    EXPECT_EQ(json["failed"], 1);
    EXPECT_EQ(json["skipped"], 1);
    EXPECT_EQ(json["runs"][1]["status"], "hang");
    EXPECT_EQ(json["runs"][1]["headline"], "train did not end within its time limit");
    EXPECT_THAT(read("report.xml"), HasSubstr("tests=\"3\" failures=\"1\" skipped=\"1\""));
    EXPECT_THAT(run("run hangs.toml").out,
                HasSubstr("again    swaplab run 'hangs[swap_adamw]'\nfailed: hangs"));
    const auto apart =
        nlohmann::json::parse(run("run hangs.toml good.toml --json --world process").out);
    EXPECT_EQ(apart["runs"][0]["status"], "hang");
    EXPECT_EQ(apart["runs"][1]["status"], "pass") << "a process that hangs can be ended";
}

}  // namespace
}  // namespace swaplab::harness
