#include "inspect_fixture.hpp"
#include "json_value.hpp"

namespace swaplab::harness {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

struct Output {
    ExitCode exit;
    std::string text;
};

Output diff(const std::string& a, const std::string& b, bool json = false, bool all = false) {
    Memory memory;
    memory.add(a).add(b);
    std::ostringstream out;
    const ExitCode exit = diff_command(memory.storage(), {a, b, json, {all}}, out);
    return {exit, out.str()};
}

TEST(DiffCommand, ShowsFirstElementValueAndKeysOfOneSide) {
    const Output output = diff("v2_w2_uneven_amsgrad", "v2_w2_uneven_amsgrad_2groups");
    EXPECT_EQ(output.exit, ExitCode::failed);
    EXPECT_EQ(output.text,
              "differs   model.b [5,3] fp32   15 of 15 elements, largest difference 2.386e-2\n"
              "            first [0,0]   A be24953b  -0.160725519   B be3a5af1  -0.181987539   "
              "1,426,870 ULP\n"
              "value     optimizer.param_groups.0.params   A [\"a\",\"b\",\"c\"]   B "
              "[\"a\",\"c\"]\n"
              "only in B optimizer.param_groups.1.* (12 keys)\n"
              "25 keys equal, 2 differ, 0 only in A, 12 only in B\n");
}

TEST(DiffCommand, TellsKindsAndValuesApart) {
    const Output output = diff("v2_w2_uneven", "v2_w2_uneven_amsgrad");
    EXPECT_EQ(output.text,
              "kind      optimizer.state.a.max_exp_avg_sq   A None   B tensor [5,3] fp32\n"
              "kind      optimizer.state.b.max_exp_avg_sq   A None   B tensor [5,3] fp32\n"
              "kind      optimizer.state.c.max_exp_avg_sq   A None   B tensor [7] fp32\n"
              "value     optimizer.param_groups.0.amsgrad   A false   B true\n"
              "23 keys equal, 4 differ, 0 only in A, 0 only in B\n");
}

TEST(DiffCommand, EqualContentStoredDifferentlyIsEqual) {
    const Output output = diff("single_adamw_fp32", "ranks2_shard0");
    EXPECT_EQ(output.exit, ExitCode::ok);
    EXPECT_EQ(output.text,
              "28 keys equal, bit for bit (stored differently: A 1 data file, 28 "
              "items; B 2 data files, 40 items)\n");
}

TEST(DiffCommand, ShapesAndDtypesAreSaidBeforeElements) {
    EXPECT_THAT(diff("v2_w2_even", "v0_w2_even").text,
                HasSubstr("shape     optimizer.state.a.exp_avg   A [12,2]   B [6,2]\n"));
    EXPECT_THAT(diff("single_adamw_fp32", "single_adamw_bf16").text,
                HasSubstr("dtype     model.embed.weight   A fp32   B bf16\n"));
}

TEST(DiffCommand, KeysOfOneSideAreGroupedUnlessAllAreAskedFor) {
    EXPECT_THAT(diff("v2_w2_even", "v0_w2_even_optonly").text,
                HasSubstr("only in A model.* (3 keys)\n"));
    EXPECT_THAT(diff("v2_w2_even", "v0_w2_even_optonly", false, true).text,
                HasSubstr("only in A model.a\nonly in A model.b\n"));
    EXPECT_THAT(diff("v0_w2_even_optonly", "v2_w2_even").text,
                HasSubstr("only in B model.* (3 keys)\n"));
}

TEST(DiffCommand, ADamagedPayloadIsRefusedInsteadOfCalledDifferent) {
    Memory memory;
    memory.add("v2_w2_even", "a").add("v2_w2_even", "b");
    const Checkpoint before(memory.storage(), "b");
    const StoredItem item = *before.metadata().find("model.c")->tensor()->chunks[1].stored;
    constexpr std::size_t record_offset = 704;  // data/0 in an item of this size
    memory.bytes("b/" + item.relative_path).at(item.offset_bytes + record_offset) ^= std::byte{1};
    std::ostringstream out;
    EXPECT_THROW((void)diff_command(memory.storage(), {"a", "b", false, {}}, out),
                 CheckpointCorrupt);
}

TEST(DiffCommand, JsonHoldsBitsAsText) {
    const oracle::Value json =
        oracle::parse_json(diff("v2_w2_uneven_amsgrad", "v2_w2_uneven_amsgrad_2groups", true).text);
    EXPECT_EQ(oracle::text(oracle::at(json, "schema")), "swaplab.diff/1");
    EXPECT_EQ(oracle::integer(oracle::at(json, "equal")), 25);
    const oracle::Value& first =
        oracle::at(oracle::at(oracle::at(json, "differences"), std::size_t{0}), "first_difference");
    EXPECT_EQ(oracle::text(oracle::at(first, "a_bits")), "be24953b");
    EXPECT_EQ(oracle::integer(oracle::at(first, "ulp")), 1426870);
    EXPECT_EQ(oracle::items(oracle::at(json, "only_in_b")).size(), 12U);
}

}  // namespace
}  // namespace swaplab::harness
