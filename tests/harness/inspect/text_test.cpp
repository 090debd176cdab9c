#include "inspect/text.hpp"

#include "inspect_fixture.hpp"
#include "json_value.hpp"

namespace swaplab::harness {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(InspectText, AHealthyCheckpointSaysWhatWasAndWhatWasNotChecked) {
    Memory memory;
    EXPECT_EQ(memory.add("v2_w2_even").text(of("v2_w2_even")),
              "v2_w2_even   DCP, ranks 0-1 (from file names), 3 files, 59,589 B, 27 keys\n"
              "  parameters   3   60 elements    fp32\n"
              "  moments      6   120 elements   fp32   exp_avg, exp_avg_sq; max_exp_avg_sq is "
              "None (3)\n"
              "  steps        3   all 3\n"
              "  groups       1   lr 0.01, betas 0.9 0.999, eps 1e-08, weight_decay 0.1, amsgrad "
              "off\n"
              "ok    every moment has its parameter's shape; 12 tensors tiled once by 21 chunks; "
              "36 items match their headers; steps agree\n"
              "      not checked: payload bytes (no checksum file in this directory; --digest "
              "prints SHA-256 per tensor)\n");
    EXPECT_EQ(memory.exit(), ExitCode::ok);
}

TEST(InspectText, LostShardsAreCountedAndLocated) {
    Memory memory;
    EXPECT_EQ(
        memory.add("v0_w2_even").text(of("v0_w2_even")),
        "v0_w2_even   DCP, ranks 0-1 (from file names), 3 files, 49,341 B, 27 keys\n"
        "finding  lost-shards: 6 moments are smaller than their parameter; 60 of 120 moment "
        "elements (50.0 %) are in no file\n"
        "  key                            saved   parameter        kept                 lost      "
        "          elements lost\n"
        "  optimizer.state.a.exp_avg      [6,2]   model.a [12,2]   rank 1 [6:12, 0:2]   rank 0 "
        "[0:6, 0:2]   12 of 24 (50.0 %)\n"
        "  optimizer.state.a.exp_avg_sq   [6,2]   model.a [12,2]   rank 1 [6:12, 0:2]   rank 0 "
        "[0:6, 0:2]   12 of 24 (50.0 %)\n"
        "  optimizer.state.b.exp_avg      [6,2]   model.b [12,2]   rank 1 [6:12, 0:2]   rank 0 "
        "[0:6, 0:2]   12 of 24 (50.0 %)\n"
        "  optimizer.state.b.exp_avg_sq   [6,2]   model.b [12,2]   rank 1 [6:12, 0:2]   rank 0 "
        "[0:6, 0:2]   12 of 24 (50.0 %)\n"
        "  optimizer.state.c.exp_avg      [6]     model.c [12]     rank 1 [6:12]        rank 0 "
        "[0:6]        6 of 12 (50.0 %)\n"
        "  optimizer.state.c.exp_avg_sq   [6]     model.c [12]     rank 1 [6:12]        rank 0 "
        "[0:6]        6 of 12 (50.0 %)\n"
        "  cause  plain local tensors were saved under one key per moment; the writer kept one "
        "rank's and dropped the others without a word\n"
        "  means  PyTorch loads this silently into 2 equal shards: rank 0 then trains with rank "
        "1's moments\n"
        "  do     parameters are complete (60 of 60 elements): resume from an older checkpoint, or "
        "load without optimizer state\n"
        "         (load_states = false) and accept fresh moments; from now on save moments as "
        "DTensors (docs/lost-shards.md)\n");
    EXPECT_EQ(memory.exit(), ExitCode::failed);
}

TEST(InspectText, UnevenShardsAreRefusedByPytorchAndTheTextSaysSo) {
    Memory memory;
    const std::string text = memory.add("v0_w3_empty").text(of("v0_w3_empty"));
    EXPECT_THAT(text, HasSubstr("22 of 34 moment elements (64.7 %)"));
    EXPECT_THAT(text, HasSubstr("optimizer.state.e.exp_avg      [0]     model.e [1]     rank 2, "
                                "nothing     rank 0 [0:1]"));
    EXPECT_THAT(text, HasSubstr("1 of 1 (100.0 %)"));
    EXPECT_THAT(text, HasSubstr("means  PyTorch refuses to load it (size mismatch)"));
}

TEST(InspectText, NineRowsAreCutToEightUnlessAllAreAskedFor) {
    Memory memory;
    InspectOptions options = of("v0_w2_even_amsgrad");
    EXPECT_THAT(memory.add("v0_w2_even_amsgrad").text(options),
                HasSubstr("  ... and 1 more (--all)\n"));
    options.look.all = true;
    const std::string all = memory.text(options);
    EXPECT_THAT(all, Not(HasSubstr("more (--all)")));
    EXPECT_THAT(all, HasSubstr("optimizer.param_groups.0.lr"));
    EXPECT_THAT(all, HasSubstr("__1_0.distcp"));
}

TEST(InspectText, WithoutParametersItCannotTellAndSaysHowToFindOut) {
    Memory memory;
    EXPECT_EQ(memory.add("v0_w2_even_optonly").text(of("v0_w2_even_optonly")),
              "v0_w2_even_optonly   DCP, ranks 0-1 (from file names), 3 files, 38,764 B, 24 keys\n"
              "cannot tell  whether 6 moments are complete: their parameters are not in this "
              "directory (first: optimizer.state.a.exp_avg, saved [6,2])\n"
              "  do     swaplab inspect v0_w2_even_optonly --against MODEL_DIR          # the "
              "checkpoint that holds the parameters\n"
              "         swaplab inspect v0_w2_even_optonly --against shapes.json        # {\"a\": "
              "[dims], \"b\": [dims], \"c\": [dims]}\n");
    EXPECT_EQ(memory.exit(), ExitCode::nothing);
}

TEST(InspectText, AgainstAShapesFileItFindsTheLossButNamesNoRange) {
    Memory memory;
    memory.add("v0_w2_even_optonly").put("shapes.json", R"({"a": [12,2], "b": [12,2], "c": [12]})");
    InspectOptions options = of("v0_w2_even_optonly");
    options.against = "shapes.json";
    const std::string text = memory.text(options);
    EXPECT_EQ(memory.exit(), ExitCode::failed);
    EXPECT_THAT(text, HasSubstr("60 of 120 moment elements (50.0 %) are in no file"));
    EXPECT_THAT(text, HasSubstr("optimizer.state.a.exp_avg      [6,2]   a [12,2] (shapes.json)   "
                                "rank 0, range unknown   unknown   12 of 24 (50.0 %)\n"));
    EXPECT_THAT(text, HasSubstr("optimizer.state.a.exp_avg_sq   [6,2]   a [12,2] (shapes.json)   "
                                "rank 1, range unknown   unknown   12 of 24 (50.0 %)\n"));
}

TEST(InspectText, AgainstAnotherCheckpointItUsesThatOnesParameters) {
    Memory memory;
    memory.add("v0_w2_even_optonly").add("v2_w2_even");
    InspectOptions options = of("v0_w2_even_optonly");
    options.against = "v2_w2_even";
    EXPECT_THAT(memory.text(options), HasSubstr("model.a [12,2] (v2_w2_even)"));
    EXPECT_EQ(memory.exit(), ExitCode::failed);
}

TEST(InspectText, AgainstAFileThatIsNoShapesFileIsRefused) {
    Memory memory;
    memory.add("v0_w2_even_optonly").put("shapes.json", std::string("[1,2]"));
    InspectOptions options = of("v0_w2_even_optonly");
    options.against = "shapes.json";
    EXPECT_THROW((void)memory.text(options), sim::ArgumentError);
}

TEST(InspectText, ExchangedChunksAreToldByTheShapesInsideTheItems) {
    Memory memory;
    const std::string name = "ranks6_fsdp_tp_uneven_bad_geometry";
    const std::string text = memory.add(name).text(of(name));
    EXPECT_EQ(memory.exit(), ExitCode::failed);
    EXPECT_THAT(
        text,
        HasSubstr(name +
                  "   DCP, ranks 0-5 (from file names), 7 files, 30,959 B, 3 keys\n"
                  "finding  exchanged-chunks: 2 of 6 chunks of w name another item than the one "
                  "stored; 2 of 14 elements (14.3 %) cannot be reached\n"
                  "  key       .metadata says     file, item                   item holds\n"
                  "  w [7,2]   [6:7, 0:2]   8 B   __4_0.distcp at 0, 1,513 B   [0,2]   0 B\n"
                  "  w [7,2]   [7:7, 0:2]   0 B   __5_0.distcp at 0, 1,577 B   [1,2]   8 B\n"));
    EXPECT_THAT(text, HasSubstr("(the directory does not name its writer)"));
}

TEST(InspectText, ATruncatedFileSaysWhichItemsAreGone) {
    Memory memory;
    memory.add("ranks2_shard0", "cut").bytes("cut/__1_0.distcp").resize(20214);
    const std::string text = memory.text(of("cut"));
    EXPECT_EQ(memory.exit(), ExitCode::failed);
    EXPECT_THAT(text, HasSubstr("cut   DCP, ranks 0-1 (from file names), 3 files, 48,339 B, 28 "
                                "keys\n"
                                "finding  truncated-file: __1_0.distcp has 20,214 B, .metadata "
                                "needs 40,428 B; 13 of 28 keys, 66 of 181 elements (36.5 %) "
                                "cannot be read\n"));
    EXPECT_THAT(text, HasSubstr("model.head.weight                            [3:5, 0:3]   19,927 "
                                "to 21,504   287 of 1,577   6 of 15 (40.0 %)\n"));
    EXPECT_THAT(text, HasSubstr("optimizer.state.embed.weight.step            []           21,504 "
                                "to 23,081   0 of 1,577     1 of 1 (100.0 %)\n"));
    EXPECT_THAT(text, HasSubstr("  ... and 5 more (--all)\n"
                                "  means  PyTorch notices only after it has overwritten 12 of 16 "
                                "live tensors, wholly or in part\n"));
}

TEST(InspectText, NotesDoNotChangeTheExit) {
    Memory memory;
    EXPECT_THAT(memory.add("ranks2_over_stale_ranks4").text(of("ranks2_over_stale_ranks4")),
                HasSubstr("note  2 data files that .metadata does not name: __2_0.distcp, "
                          "__3_0.distcp (53,228 B)\n"));
    EXPECT_EQ(memory.exit(), ExitCode::ok);
    EXPECT_THAT(memory.add("ranks6_fsdp_tp_uneven").text(of("ranks6_fsdp_tp_uneven")),
                HasSubstr("note  no optimizer state here\n"));
    EXPECT_EQ(memory.exit(), ExitCode::ok);
}

TEST(InspectText, EveryGroupIsShownWhenTheyDiffer) {
    Memory memory;
    EXPECT_THAT(memory.add("v2_w2_uneven_amsgrad_2groups").text(of("v2_w2_uneven_amsgrad_2groups")),
                HasSubstr("groups       2   0: lr 0.01, betas 0.9 0.999, eps 1e-08, weight_decay "
                          "0.1, amsgrad on\n"
                          "                   1: lr 0.002, "));
}

TEST(InspectText, NoTextEverClaimsAWriterVersionOfTheDirectory) {
    Memory memory;
    EXPECT_THAT(memory.add("one_process_adamw_torch2.15", "x").text(of("x")),
                Not(HasSubstr("torch")));
}

TEST(InspectText, DigestsFollowTheReport) {
    Memory memory;
    InspectOptions options = of("single_zero_dim_param");
    options.digest = true;
    EXPECT_THAT(memory.add("single_zero_dim_param").text(options),
                ::testing::ContainsRegex("\nsha256  [0-9a-f]{64}  model.scale fp32 \\[\\]\n"));
}

TEST(InspectText, QuietKeepsTheDigestsThatWereAskedFor) {
    Memory memory;
    InspectOptions options = of("single_zero_dim_param");
    options.digest = true;
    options.look.quiet = true;
    EXPECT_THAT(memory.add("single_zero_dim_param").text(options),
                ::testing::MatchesRegex("(sha256  [0-9a-f]{64}  [^\n]*\n)+"));
}

TEST(InspectText, OneOfAThingIsNotSpokenOfAsMany) {
    InspectReport report;
    report.directory = "d";
    report.files.resize(1);
    report.files[0].exists = true;
    report.tensors.resize(1);
    report.tensors[0].role = Role::parameter;
    report.tensors[0].chunks.resize(1);
    report.items = 1;
    const std::string text = to_text(report, {});
    EXPECT_THAT(text, ::testing::StartsWith("d   DCP, 1 file, 0 B, 1 key\n  parameters   1   1 "
                                            "element   "));
    EXPECT_THAT(text, HasSubstr("ok    1 tensor tiled once by 1 chunk; 1 item matches its header"));
}

TEST(InspectJson, GivesListsAsLists) {
    Memory memory;
    InspectOptions options = of("v2_w2_even");
    options.json = true;
    const oracle::Value json = oracle::parse_json(memory.add("v2_w2_even").text(options));
    const oracle::Value& group = oracle::at(oracle::at(json, "groups"), std::size_t{0});
    EXPECT_EQ(oracle::items(oracle::at(group, "params")).size(), 3U);
    EXPECT_EQ(oracle::text(oracle::at(oracle::at(group, "params"), std::size_t{0})), "a");
    EXPECT_EQ(oracle::items(oracle::at(group, "betas")).size(), 2U);
}

TEST(InspectJson, HoldsFindingsWithRanksAndExit) {
    Memory memory;
    InspectOptions options = of("v0_w2_even");
    options.json = true;
    const oracle::Value json = oracle::parse_json(memory.add("v0_w2_even").text(options));
    EXPECT_EQ(oracle::text(oracle::at(json, "schema")), "swaplab.inspect/1");
    EXPECT_EQ(oracle::integer(oracle::at(json, "exit")), 1);
    EXPECT_EQ(oracle::items(oracle::at(json, "tensors")).size(), 12U);
    const oracle::Value& first = oracle::at(oracle::at(json, "findings"), std::size_t{0});
    EXPECT_EQ(oracle::text(oracle::at(first, "code")), "lost-shards");
    EXPECT_EQ(oracle::shape(oracle::at(first, "saved")), (Shape{6, 2}));
    EXPECT_EQ(oracle::integer(oracle::at(first, "elements_lost")), 12);
    const oracle::Value& lost = oracle::at(oracle::at(first, "lost"), std::size_t{0});
    EXPECT_EQ(oracle::integer(oracle::at(lost, "rank")), 0);
    EXPECT_EQ(oracle::shape(oracle::at(lost, "size")), (Shape{6, 2}));
}

TEST(InspectJson, SaysWhatCannotBeTold) {
    Memory memory;
    InspectOptions options = of("v0_w2_even_optonly");
    options.json = true;
    const oracle::Value json = oracle::parse_json(memory.add("v0_w2_even_optonly").text(options));
    EXPECT_EQ(oracle::integer(oracle::at(json, "exit")), 3);
    EXPECT_EQ(oracle::items(oracle::at(json, "cannot_tell")).size(), 6U);
    EXPECT_EQ(oracle::items(oracle::at(json, "findings")).size(), 0U);
}

}  // namespace
}  // namespace swaplab::harness
