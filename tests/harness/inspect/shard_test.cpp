#include "inspect/inspect.hpp"

#include "swaplab/sim/error.hpp"

#include <sstream>

namespace swaplab::harness {
namespace {

std::string shard_text(const ShardOptions& options) {
    std::ostringstream out;
    EXPECT_EQ(shard_command(options, out), ExitCode::ok);
    return out.str();
}

TEST(ShardCommand, PrintsWhatTheReadmeOfTheSurfaceShows) {
    EXPECT_EQ(shard_text({"5,3", "2x2", "S0,S0"}),
              "rank   mesh    local   offset   holds\n"
              "0      [0,0]   [2,3]   [0,0]    [0:2, 0:3]\n"
              "1      [0,1]   [1,3]   [2,0]    [2:3, 0:3]\n"
              "2      [1,0]   [1,3]   [3,0]    [3:4, 0:3]\n"
              "3      [1,1]   [1,3]   [4,0]    [4:5, 0:3]\n"
              "15 of 15 elements, each once\n");
}

TEST(ShardCommand, CutsTheLongestDimThatCanBeCounted) {
    EXPECT_THAT(shard_text({"9223372036854775807", "3", "S0"}),
                ::testing::HasSubstr("[6148914691236517206:9223372036854775807]\n"
                                     "9223372036854775807 of 9223372036854775807 elements"));
}

TEST(ShardCommand, AnEmptyShardHoldsNothing) {
    EXPECT_THAT(shard_text({"1", "2", "S0"}),
                ::testing::HasSubstr("1      [1]    [0]     [1]      nothing\n"));
}

TEST(ShardCommand, ReplicasAreCounted) {
    EXPECT_THAT(shard_text({"5", "2x3", "R,S0"}),
                ::testing::HasSubstr("5 of 5 elements, each 2 times\n"));
}

TEST(ShardCommand, AZeroDimTensorAndPythonSpellingsAreRead) {
    EXPECT_THAT(shard_text({"", "2", "Replicate()"}),
                ::testing::HasSubstr("1 of 1 elements, each 2 times\n"));
    EXPECT_THAT(shard_text({"8,1", "2x2", "_StridedShard(0, sf=2),Shard(0)"}),
                ::testing::HasSubstr("8 of 8 elements, each once\n"));
}

TEST(ShardCommand, JsonHoldsEveryRank) {
    const std::string expected =
        R"j({"schema":"swaplab.shard/1","shape":[3],"mesh":[2],"placements":["Shard(0)"],)j"
        R"("ranks":[{"rank":0,"mesh":[0],"size":[2],"offset":[0]},)"
        R"({"rank":1,"mesh":[1],"size":[1],"offset":[2]}],"elements":3,"covered":3})";
    EXPECT_EQ(shard_text({"3", "2", "S0", true}), expected + "\n");
}

TEST(ShardCommand, RefusesTextThatIsNoShapeMeshOrPlacement) {
    std::ostringstream out;
    for (const ShardOptions& bad :
         {ShardOptions{"5,x", "2", "S0"}, ShardOptions{"5,-3", "2", "S0"},
          ShardOptions{"5", "0", "S0"}, ShardOptions{"5", "2x", "S0"}, ShardOptions{"5", "", "S0"},
          ShardOptions{"5", "2", "Q0"}, ShardOptions{"5", "2", ""}}) {
        EXPECT_THROW((void)shard_command(bad, out), sim::ArgumentError) << bad.shape << bad.mesh;
    }
    EXPECT_EQ(out.str(), "");
}

}  // namespace
}  // namespace swaplab::harness
