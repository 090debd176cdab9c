// What a careless or hostile user gives to the command: a sentence that says what to do, an exit
// code, and never a hang, a crash or a bare name of an exception.

#include "command_fixture.hpp"

#include <nlohmann/json.hpp>

#include <filesystem>
#include <sys/stat.h>

namespace swaplab::harness {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

/// A copy of a real checkpoint that tests may break.
void copy_checkpoint(const std::string& to) {
    std::filesystem::copy(SWAPLAB_SOURCE_DIR "/scenarios/data/v2_w2_uneven", to);
}

struct Asked {
    const char* arguments;
    int exit;
    const char* says;
};

class Refused : public Command, public testing::WithParamInterface<Asked> {};

TEST_P(Refused, WithASentence) {
    write("it.toml", good + passes);
    std::filesystem::create_directory(path("empty"));
    ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
    const Ran ran = run(GetParam().arguments);
    EXPECT_EQ(ran.exit, GetParam().exit) << ran.out;
    EXPECT_THAT(ran.out, HasSubstr(GetParam().says));
    EXPECT_THAT(ran.out, HasSubstr("error: "));
    EXPECT_THAT(ran.out, Not(HasSubstr("std::")));
    EXPECT_THAT(ran.out, Not(HasSubstr("what()")));
}

INSTANTIATE_TEST_SUITE_P(
    Arguments, Refused,
    testing::Values(
        Asked{"''", 2, "unknown command \"\""}, Asked{"--bogus", 2, "unknown option \"--bogus\""},
        Asked{"--bogus", 2, "do  swaplab --help"}, Asked{"--verion", 2, "nearest: --version"},
        Asked{"--json run it.toml", 2, "options of a command come after it"},
        Asked{"run", 2, "PATH is required"}, Asked{"run ''", 2, "\"\" names no file"},
        Asked{"run '['", 2, "\"[\" names no file"}, Asked{"run '[]'", 2, "PATH"},
        Asked{"run 'it['", 2, "\"it[\" names no run"}, Asked{"run 'it[]'", 2, "names no run"},
        Asked{"run 'it[nobody]'", 2, "it.toml has no run [nobody]"},
        Asked{"run it.toml --junit ''", 2, "--junit: the name is empty"},
        Asked{"run it.toml --junit", 2, "--junit"},
        Asked{"run it.toml --json ''", 2, "\"\" names no file"},
        Asked{"run it.toml --seed -1", 2, "--seed"}, Asked{"run it.toml --seed x", 2, "--seed"},
        Asked{"run it.toml --world 0", 2, "--world"},
        Asked{"run it.toml --world 1e9", 2, "--world"},
        Asked{"run it.toml --world -1", 2, "found -1"},
        Asked{"run it.toml --world process --world 65", 2, "found 65"},
        Asked{"run it.toml --world 65", 2, "from 1 to 64, or fiber, thread or process"},
        Asked{"run it.toml --world fibre", 2, "found fibre"},
        Asked{"run it.toml --world Process", 2, "found Process"},
        Asked{"run it.toml --world ''", 2, "--world wants"},
        Asked{"run it.toml --world process --world thread", 2, "found process and thread"},
        Asked{"run it.toml --world 2 --world thread --world 3", 2, "found 2 and thread and 3"},
        Asked{"run it.toml --color blue", 2, "--color"}, Asked{"run it.toml --set =", 2, "--set"},
        Asked{"help bogus", 2, "no help on \"bogus\""},
        Asked{"run empty/no", 4, "empty/no does not exist"},
        Asked{"run /no_such_directory", 4, "; / holds"}, Asked{"run pipe", 4, "pipe is a pipe"},
        Asked{"lint pipe", 4, "not a regular file"}, Asked{"explain pipe", 4, "not a regular file"},
        Asked{"list pipe", 4, "not a regular file"}, Asked{"inspect ''", 2, "the name is empty"},
        Asked{"inspect", 2, "DIR is required"}, Asked{"inspect nowhere", 4, "does not exist"},
        Asked{"inspect it.toml", 4, "not a directory"}, Asked{"inspect pipe", 4, "not a directory"},
        Asked{"inspect empty", 4, "no checkpoint"},
        Asked{"inspect empty --against ''", 2, "the name is empty"},
        Asked{"inspect empty --against pipe", 4, "pipe"}, Asked{"diff empty", 2, "B is required"},
        Asked{"diff empty nowhere", 4, "no checkpoint"},
        Asked{"shard --shape 9223372036854775807,9223372036854775807 --mesh 2 --placements S0", 2,
              "shape"},
        Asked{"shard --shape x --mesh 2 --placements S0", 2, "shape"},
        Asked{"shard --shape 4 --mesh 0 --placements S0", 2, "mesh"},
        Asked{"shard --shape 4 --mesh 2 --placements S9", 2, ""},
        Asked{"shard --shape 4 --mesh 99999999999x99999999999 --placements S0,S0", 2, "2^63-1"},
        Asked{"shard --shape 4 --mesh 2", 2, "--placements"}));

TEST_F(Command, WithJsonAnErrorIsAnObjectOnStandardOutput) {
    write("bad.toml", "scenario.nam = 'n'\n");
    struct Case {
        const char* arguments;
        int exit;
        const char* kind;
    };
    for (const Case& one :
         {Case{"run missing.toml --json", 4, "storage"}, Case{"run --json ''", 2, "argument"},
          Case{"inspect nowhere --json", 4, "storage"}, Case{"diff a b --json", 4, "storage"},
          Case{"inspect --bogus --json", 2, "argument"}, Case{"--json", 2, "argument"}}) {
        const Ran ran = run(std::string(one.arguments) + " 2>/dev/null");
        const auto json = nlohmann::json::parse(ran.out);
        EXPECT_EQ(ran.exit, one.exit) << one.arguments;
        EXPECT_EQ(json["schema"], "swaplab.error/1") << one.arguments;
        EXPECT_EQ(json["exit"], one.exit);
        EXPECT_EQ(json["kind"], one.kind);
        EXPECT_NE(json["error"], "");
    }
    const Ran broken = run("run bad.toml --json 2>/dev/null");
    EXPECT_EQ(broken.exit, 2);
    EXPECT_EQ(nlohmann::json::parse(broken.out)["schema"], "swaplab.lint/1");
    EXPECT_THAT(broken.out, HasSubstr("\"code\":\"unknown-key\""));
}

TEST_F(Command, EveryCommandTellsItsOptions) {
    for (const std::string name : {"run", "list", "lint", "explain", "inspect", "diff", "shard"}) {
        const Ran ran = run(name + " --help");
        EXPECT_EQ(ran.exit, 0) << name;
        EXPECT_THAT(ran.out, HasSubstr("Usage: swaplab " + name + " [OPTIONS]"));
        EXPECT_EQ(run(name + " -h").out, ran.out);
    }
    EXPECT_THAT(run("inspect --help").out, HasSubstr("--against"));
}

TEST_F(Command, EveryListHasAJsonForm) {
    write("it.toml", good + passes);
    const auto json = [&](const std::string& arguments) {
        return nlohmann::json::parse(run(arguments + " --json").out);
    };
    EXPECT_EQ(json("explain it.toml")["scenarios"][0]["id"], "it");
    EXPECT_EQ(json("list --words device.capacity")["words"][0]["default"], "\"1 GiB\"");
    EXPECT_EQ(json("list --defects")["defects"][0]["name"], "stale_groups");
}

TEST_F(Command, ResultsGoNowhereElseWhenStandardOutputIsClosed) {
    write("it.toml", good + passes);
    copy_checkpoint(path("ckpt"));
    for (const char* arguments : {"run it.toml", "run it.toml --junit report.xml", "lint it.toml",
                                  "inspect ckpt", "inspect ckpt --json"}) {
        const Ran ran = run(std::string(arguments) + " >&-");
        EXPECT_EQ(ran.exit, 4) << arguments;
        EXPECT_THAT(ran.out, HasSubstr("cannot write the results")) << arguments;
    }
    EXPECT_THAT(read("report.xml"), StartsWith("<?xml"));
    EXPECT_EQ(run("run it.toml <&- 2>&-").exit, 0);
}

TEST_F(Command, ReportsOnAFullDiskExit4) {
    write("it.toml", good + passes);
    EXPECT_EQ(run("run it.toml --junit /dev/full").exit, 4);
    EXPECT_EQ(run("run it.toml --json >/dev/full").exit, 4);
    EXPECT_EQ(run("list it.toml >/dev/full").exit, 4);
    EXPECT_EQ(run("run it.toml --junit .").exit, 4);
}

TEST_F(Command, AFullDiskOfTheScenarioIsNoFullDiskOfThisMachine) {
    write("it.toml",
          "scenario.name = 'n'\nscenario.why = 'w'\nstorage.capacity = '1 B'\n"
          "param = [{ name = 'a', shape = [4] }]\nstep = [{ save = 'x' }, { load = 'x' }]\n" +
              passes);
    const Ran ran = run("run it.toml");
    EXPECT_EQ(ran.exit, 1);
    EXPECT_THAT(ran.out, HasSubstr("no space left: 0 B of 1 B are taken"));
}

TEST_F(Command, WithoutATemporaryDirectoryADiskScenarioSaysWhatToSet) {
    write("it.toml", good + passes + "storage.kind = 'posix'\n");
    const Ran ran = swaplab(path("."), "run it.toml", "TMPDIR=nowhere ");
    EXPECT_EQ(ran.exit, 4);
    EXPECT_THAT(ran.out, HasSubstr("set TMPDIR"));
}

TEST_F(Command, AReaderThatLeavesEndsTheCommandQuietly) {
    write("it.toml", good + passes);
    EXPECT_THAT(run("run it.toml -v | head -1").out, StartsWith("swaplab 0."));
}

TEST_F(Command, APipeInThePlaceOfADataFileIsNoTruncatedOne) {
    copy_checkpoint(path("ckpt"));
    std::filesystem::remove(path("ckpt/__1_0.distcp"));
    ASSERT_EQ(::mkfifo(path("ckpt/__1_0.distcp").c_str(), 0600), 0);
    const Ran ran = run("inspect ckpt");
    EXPECT_EQ(ran.exit, 1);
    EXPECT_THAT(ran.out, HasSubstr("finding  missing-file: __1_0.distcp is a pipe, socket or "
                                   "device, not a regular file"));
    std::filesystem::remove(path("ckpt/.metadata"));
    ASSERT_EQ(::mkfifo(path("ckpt/.metadata").c_str(), 0600), 0);
    EXPECT_EQ(run("inspect ckpt").exit, 4);
    EXPECT_EQ(run("diff ckpt ckpt").exit, 4);
}

TEST_F(Command, AValueFromTheCommandLineStandsAtNoLineOfTheFile) {
    write("it.toml", good + passes);
    EXPECT_THAT(run("run it.toml --set optimizer.lr=nan").out,
                HasSubstr("it.toml: error[bad-value]: Invalid learning rate: nan"));
}

TEST_F(Command, AShapeOfManyDimsIsCoveredInTime) {
    std::string ones = "1";
    for (int i = 1; i < 64; ++i) {
        ones += ", 1";
    }
    write("it.toml",
          "scenario.name = 'n'\nscenario.why = 'w'\nparam = [{ name = 'a', shape = [" + ones +
              "] }]\nstep = [{ train = 1 }, { save = 'x', expect.cover.missing = 0 }]\n" + passes);
    EXPECT_EQ(run("run it.toml").exit, 0);
}

TEST_F(Command, BrokenFilesAreRefusedWhateverTheyHold) {
    const std::string many(200000, '[');
    for (const std::string& text :
         {std::string("\0\0\0", 3), std::string("a = \"\0\"", 7), std::string("\xff\xfe"), many,
          "x = " + many, std::string(1 << 21, 'x'), std::string("[scenario"),
          good + passes + "matrix = { scenario.seed = [" + std::string(100000, '1') + "] }",
          std::string("param = [{ name = 'a', shape = [9223372036854775807, 2] }]")}) {
        write("it.toml", text);
        for (const char* command : {"lint", "run", "explain"}) {
            const Ran ran = run(std::string(command) + " it.toml");
            EXPECT_EQ(ran.exit, 2) << command << " " << text.substr(0, 40);
            EXPECT_THAT(ran.out, HasSubstr("it.toml:")) << text.substr(0, 40);
        }
    }
}

}  // namespace
}  // namespace swaplab::harness
