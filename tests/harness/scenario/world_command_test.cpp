/// Worlds that cannot be and ranks that end before their time, as who runs the command sees them.

#include "command_fixture.hpp"

#include <filesystem>

namespace swaplab::harness {
namespace {

using testing::HasSubstr;

#if defined(__SANITIZE_THREAD__)
const auto kinds = testing::Values("fiber", "thread");
#else
const auto kinds = testing::Values("fiber", "thread", "process");
#endif

class WorldCommand : public Command, public testing::WithParamInterface<std::string> {
  protected:
    /// A run of `step` in a world of 3, with its temporary files in an empty directory.
    [[nodiscard]] Ran run_steps(const std::string& steps) const {
        write("it.toml",
              "scenario.name = 'n'\nscenario.why = 'w'\nworld.size = 3\n"
              "param = [{ name = 'a', shape = [7, 3], placements = ['Shard(0)'] }]\nstep = [" +
                  steps + "]\n" + passes);
        std::filesystem::create_directory(path("temporary"));
        return swaplab(path("."), "run it.toml --world " + GetParam(),
                       "export TMPDIR='" + path("temporary") + "'; ");
    }
    void expect_nothing_left() const { EXPECT_TRUE(std::filesystem::is_empty(path("temporary"))); }
};
INSTANTIATE_TEST_SUITE_P(Worlds, WorldCommand, kinds, [](const auto& one) { return one.param; });

TEST_P(WorldCommand, SizesThatCannotBeAreShownWhereTheyAreWritten) {
    for (const std::string world : {"size = 0", "size = 65", "size = 1000000000", "mesh = [0]",
                                    "mesh = [13, 5]", "mesh = [1000000000, 4]"}) {
        write("it.toml",
              "world.kind = '" + GetParam() + "'\nworld." + world + "\n" + good + passes);
        for (const std::string command : {"run", "lint"}) {
            const Ran ran = run(command + " it.toml");
            EXPECT_EQ(ran.exit, 2) << world;
            EXPECT_THAT(ran.out, HasSubstr("it.toml:2:"));
            EXPECT_THAT(ran.out, HasSubstr("world." + world + ": a world has 1 to 64 ranks"));
        }
    }
}

TEST_P(WorldCommand, ANegativeSizeIsNoCount) {
    write("it.toml", "world.kind = '" + GetParam() + "'\nworld.size = -1\n" + good + passes);
    const Ran ran = run("run it.toml");
    EXPECT_EQ(ran.exit, 2);
    EXPECT_THAT(ran.out,
                HasSubstr("it.toml:2:14: error[bad-value]: size = -1: a count is between"));
}

TEST_P(WorldCommand, ARankThatIsKilledOrStopsFailsTheRunWithItsName) {
    for (const std::string deed : {"kill", "stop"}) {
        const Ran ran = run_steps(
            "{ train = 1 }, { save = 'x', fault = { at = 'write', rank = 1, "
            "then = '" +
            deed + "' } }, { restart = {} }, { load = 'x' }");
        EXPECT_EQ(ran.exit, 1) << ran.out;
        EXPECT_THAT(ran.out, HasSubstr("rank 1 did not end the step: rank 1 of 3 lost: " + deed));
        expect_nothing_left();
    }
}

TEST_P(WorldCommand, ARankThatThrowsFailsTheStepOnAllRanksWithItsName) {
    const std::string fault = "fault = { at = 'write', rank = 1, then = ";
    const Ran unexpected =
        run_steps("{ train = 1 }, { save = 'x', " + fault + "'throw' } }, { load = 'x' }");
    EXPECT_EQ(unexpected.exit, 1);
    EXPECT_THAT(unexpected.out, HasSubstr("rank 0: save: rank 1, save_checkpoint of x: write: "));
    expect_nothing_left();
    const Ran expected = run_steps("{ train = 1 }, { save = 'x', " + fault +
                                   "'eio' }, expect.error = { naming = ['rank 1'], kind = "
                                   "'storage' } }, { save = 'x' }, { load = 'x' }");
    EXPECT_EQ(expected.exit, 0) << expected.out;
    EXPECT_THAT(expected.out, HasSubstr("save: failed on 3 of 3 ranks, nothing changed"));
    expect_nothing_left();
}

TEST_P(WorldCommand, TheSizeOfDevShmDoesNotMatter) {
    write("it.toml", good + passes);
    const std::string small =
        "unshare --user --map-root-user --mount sh -c "
        "'mount -t tmpfs -o size=4k none /dev/shm && exec \"$@\"' sh ";
    if (swaplab(path("."), "--version", small).exit != 0) {
        GTEST_SKIP() << "no mount of one's own is allowed here";
    }
    const Ran ran = swaplab(path("."), "run it.toml --world 8 --world " + GetParam(), small);
    EXPECT_EQ(ran.exit, 0) << ran.out;
}

}  // namespace
}  // namespace swaplab::harness
