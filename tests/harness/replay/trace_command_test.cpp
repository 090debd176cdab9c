#include "harness/scenario/command_fixture.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>
#include <map>

namespace swaplab::harness {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::MatchesRegex;

const std::string story =
    "scenario.name = 'n'\nscenario.why = 'w'\nworld.size = 2\n"
    "param = [{ name = 'a', shape = [600], placements = ['Shard(0)'] }]\n"
    "step = [{ train = 2 }, { save = 'ckpt' }, { restart = {} },\n"
    "        { load = 'ckpt', expect.params.same_as = 'uninterrupted' }]\n";

class TraceCommand : public Command {
  protected:
    /// Content by name.
    [[nodiscard]] std::map<std::string, std::string> files(const std::string& directory) const {
        std::map<std::string, std::string> out;
        for (const auto& entry : std::filesystem::directory_iterator(path(directory))) {
            const std::string name = entry.path().filename().string();
            out[name] = read(directory + "/" + name);
        }
        return out;
    }
};

TEST_F(TraceCommand, RecordsEveryRankAndProcessOfARun) {
    write("it.toml", story + passes);
    const Ran ran = run("run it.toml --trace out");
    EXPECT_EQ(ran.exit, 0) << ran.out;
    EXPECT_THAT(ran.out, HasSubstr("4 traces and 2 charts in out"));
    const auto all = files("out");
    ASSERT_EQ(all.size(), 6U);
    int traces = 0;
    for (const auto& [name, content] : all) {
        EXPECT_THAT(name, MatchesRegex("it_swap_adamw\\.[0-9a-f]{12}\\.process[12]\\."
                                       "(rank[01]\\.trace|chart\\.json)"));
        if (name.ends_with(".json")) {
            EXPECT_EQ(json::parse(content).at("otherData").at("profile"), "unit");
        } else {
            ++traces;
            EXPECT_EQ(run("replay out/" + name).exit, 0) << name;
        }
    }
    EXPECT_EQ(traces, 4);
}

TEST_F(TraceCommand, ChangesNothingOfTheRun) {
    write("it.toml", story + passes + "matrix = { device.schedule = ['fifo', 'random'] }\n");
    json plain = json::parse(run("run it.toml --json 2>/dev/null").out);
    json traced = json::parse(run("run it.toml --json --trace out 2>/dev/null").out);
    EXPECT_EQ(traced.at("digest"), plain.at("digest"));
    EXPECT_EQ(run("run it.toml --trace again").exit, 0);
    EXPECT_EQ(files("out"), files("again"));
    EXPECT_EQ(files("out").size(), 12U);
}

TEST_F(TraceCommand, RecordsRanksThatAreProcessesOrThreads) {
    write("it.toml", story + passes);
    ASSERT_EQ(run("run it.toml --trace fibers").exit, 0);
    for (const std::string kind : {"process", "thread"}) {
        ASSERT_EQ(run("run it.toml --world " + kind + " --trace " + kind).exit, 0);
        EXPECT_EQ(files(kind).size(), 6U);
        const Ran ran = run("replay " + kind + "/*process1*.trace --profile gh200_c2c");
        EXPECT_EQ(ran.exit, 0) << ran.out;
        EXPECT_THAT(ran.out, HasSubstr("2 traces, 0 findings"));
    }
}

TEST_F(TraceCommand, ChartsOnTheProfileOfTheScenario) {
    write("it.toml", story + passes + "matrix = { device.profile = ['unit', 'gh200_c2c'] }\n");
    ASSERT_EQ(run("run it.toml --trace out").exit, 0);
    int gh200 = 0;
    for (const auto& [name, content] : files("out")) {
        gh200 += content.find("\"profile\":\"gh200_c2c\"") != std::string::npos ? 1 : 0;
    }
    EXPECT_EQ(gh200, 2);
    const Ran ran = run("lint it.toml --set device.profile=h100");
    EXPECT_EQ(ran.exit, 2);
    EXPECT_THAT(ran.out, HasSubstr("h200_pcie5"));
    EXPECT_EQ(run("lint it.toml --set device.profile=h200_pcie5").exit, 0);
}

TEST_F(TraceCommand, RecordsEachPassOfAFault) {
    write("it.toml",
          "scenario.name = 'n'\nscenario.why = 'w'\nparam = [{ name = 'a', shape = [600] }]\n"
          "step = [{ train = 1 }, { save = 'c' }, { load = 'c', "
          "fault = { at = 'open', nth = 'each' }, "
          "expect.error = { naming = ['rank 0'], leaves = 'anything' } }]\n" +
              passes);
    const Ran ran = run("run it.toml --trace out");
    ASSERT_EQ(ran.exit, 0) << ran.out;
    const auto all = files("out");
    const bool first = std::any_of(all.begin(), all.end(), [](const auto& file) {
        return file.first.find(".pass1.process1.rank0.trace") != std::string::npos;
    });
    EXPECT_TRUE(first);
    EXPECT_GE(all.size(), 4U);
}

TEST_F(TraceCommand, WritesIntoNewDirectoriesOnly) {
    write("it.toml", story + passes);
    std::filesystem::create_directory(path("full"));
    write("full/mine", "mine");
    write("file", "mine");
    const Ran ran = run("run it.toml --trace full");
    EXPECT_EQ(ran.exit, 4);
    EXPECT_THAT(ran.out, HasSubstr("not empty; name a new directory"));
    EXPECT_EQ(files("full").size(), 1U);
    EXPECT_EQ(run("run it.toml --trace file").exit, 4);
    EXPECT_EQ(read("file"), "mine");
    std::filesystem::create_directory(path("empty"));
    EXPECT_EQ(run("run it.toml --trace empty").exit, 0);
    EXPECT_EQ(run("run it.toml --trace deep/er").exit, 0);
    EXPECT_EQ(run("run it.toml --trace empty").exit, 4);
    for (const std::string other : {"--invert", "--device simulated"}) {
        EXPECT_EQ(run("run it.toml --trace new " + other).exit, 2) << other;
        EXPECT_FALSE(std::filesystem::exists(path("new")));
    }
    EXPECT_EQ(run("run it.toml --trace ''").exit, 2);
}

TEST_F(TraceCommand, ReplayShrinksARunThatFails) {
    write("it.toml",
          "scenario.name = 'n'\nscenario.why = 'w'\n"
          "param = [{ name = 'a', shape = [4000] }]\nstep = [{ train = 3 }]\n"
          "case = [{ specimen = ['download_unwaited'], fails = ['train.findings'] }]\n");
    ASSERT_EQ(run("run it.toml --trace out").exit, 0) << run("run it.toml").out;
    std::string trace;
    for (const auto& [name, content] : files("out")) {
        trace = name.ends_with(".trace") ? "out/" + name : trace;
    }
    EXPECT_EQ(run("replay " + trace + " --shrink same --chart same").exit, 2);
    EXPECT_FALSE(std::filesystem::exists(path("same")));
    const Ran whole = run("replay " + trace + " --shrink small.trace --chart chart.json");
    EXPECT_EQ(whole.exit, 1) << whole.out;
    EXPECT_THAT(whole.out, HasSubstr("finding  "));
    EXPECT_TRUE(json::accept(read("chart.json")));
    const auto finding = [](const std::string& out) {
        const std::size_t at = out.find("finding  ");
        return out.substr(at, out.find('\n', at) - at);
    };
    const Ran small = run("replay small.trace");
    EXPECT_EQ(small.exit, 1);
    EXPECT_THAT(small.out, HasSubstr(finding(whole.out)));
    EXPECT_THAT(whole.out, HasSubstr("keeps    " + finding(whole.out).substr(9)));
    EXPECT_LT(read("small.trace").size(), read(trace).size() / 2);
}

TEST_F(TraceCommand, ReplayRefusesWhatIsNoTrace) {
    write("none.trace", "");
    write("text.trace", "swaplab trace\nhello");
    std::filesystem::create_directory(path("dir"));
    for (const std::string file : {"none.trace", "text.trace", "it.toml"}) {
        write("it.toml", story);
        const Ran ran = run("replay " + file);
        EXPECT_EQ(ran.exit, 2) << file;
        EXPECT_THAT(ran.out, HasSubstr("error: " + file + ": no readable trace"));
        EXPECT_EQ(json::parse(run("replay " + file + " --json 2>/dev/null").out).at("exit"), 2);
    }
    EXPECT_EQ(run("replay missing.trace").exit, 4);
    EXPECT_EQ(run("replay dir").exit, 4);
    EXPECT_EQ(run("replay").exit, 2);
    EXPECT_EQ(run("replay /dev/zero").exit, 4);
    EXPECT_THAT(run("replay --help").out, HasSubstr("Example: swaplab replay"));
}

}  // namespace
}  // namespace swaplab::harness
