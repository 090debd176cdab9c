#include "hex.hpp"
#include "json_value.hpp"
#include "oracle_check.hpp"

#include "swaplab/sim/error.hpp"

#include <cmath>
#include <fstream>
#include <iterator>
#include <limits>

namespace swaplab::oracle {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<Tally> check(const std::string& path) {
    const auto storage = harness::make_posix_storage();
    return check_path(*storage, std::string(SWAPLAB_TEST_DATA) + "/" + path);
}

Tally check_one(const std::string& path) {
    auto tallies = check(path);
    EXPECT_EQ(tallies.size(), 1U);
    return tallies.at(0);
}

/// What check_path() says about a file with this content.
Tally check_content(const std::string& content) {
    const auto storage = harness::make_memory_storage();
    storage->make_directory("d");
    const auto file = storage->create("d/any name.json");
    file->append(std::as_bytes(std::span(content.data(), content.size())));
    file->close();
    return check_path(*storage, "d/any name.json").at(0);
}

TEST(OracleCheck, GeometryAgreesInEveryRow) {
    const Tally tally = check_one("dcp/geometry.json");
    EXPECT_EQ(tally.agreeing(), 5878);
    EXPECT_EQ(tally.not_supported(), 0);
    EXPECT_THAT(tally.first_differences(), IsEmpty());
}

TEST(OracleCheck, AWrongGeometryRowDiffersAndIsNamed) {
    const Tally tally = check_content(
        R"({"torch": "2.8.0", "table": [[[5],[2],["S0"],[[3,0],[2,2]]],[[5],[2],["X"],[[1,0]]]]})");
    EXPECT_EQ(tally.agreeing(), 1);
    EXPECT_EQ(tally.differing(), 1);
    EXPECT_EQ(tally.not_supported(), 1);
    EXPECT_THAT(tally.first_differences(),
                ElementsAre(HasSubstr("rank 1: expected [2,2], found [2,3]")));
}

TEST(OracleCheck, ACaseThatPytorchRefusesMustBeRefused) {
    const Tally tally =
        check_content(R"({"torch": "2.8.0", "table": [[[4],[2],["S0"],"ValueError: no"],)"
                      R"([[4],[2],["S1"],"RuntimeError: dim"]]})");
    EXPECT_EQ(tally.differing(), 1);
    EXPECT_EQ(tally.agreeing(), 1);
}

TEST(OracleCheck, GeometryOfOtherVersionsIsNotSupported) {
    const Tally own =
        check_content(R"({"torch": "2.6.0", "table": [[[5],[2],["S0"],[[3,0],[2,3]]]]})");
    EXPECT_EQ(own.not_supported(), 2);
    EXPECT_EQ(own.agreeing(), 0);
    const Tally listed =
        check_content(R"({"torch": {"2.6.0": [[[5],[2],["S0"],[[3,0],[2,3]]]]}, "doc": []})");
    EXPECT_EQ(listed.not_supported(), 2);
}

TEST(OracleCheck, AdamwVectorsAgreeInEverySupportedRun) {
    const Tally tally = check_one("adamw/adamw_fp32.json");
    EXPECT_EQ(tally.agreeing(), 162);
    EXPECT_EQ(tally.not_supported(), 10);
    EXPECT_THAT(tally.first_differences(), IsEmpty());
}

std::string adamw_case(const std::string& p_after) {
    return R"({"format": "adamw-vectors-1", "cases": [{"id": "one", "cls": "AdamW",)"
           R"("dtype": "fp32", "groups": [{"params": [0], "lr": 0.5, "betas": [0.5, 0.5],)"
           R"("eps": 0.0, "weight_decay": 0.0, "amsgrad": false, "maximize": false}],)"
           R"("params": [{"dtype": "fp32", "shape": [1], "init": "40000000"}],)"
           R"("grads": [["3f800000"]], "runs": [{"paths": ["single", "fused"],)"
           R"("steps": [{"p": [")" +
           p_after + R"("], "m": ["3f000000"], "v": ["3f000000"], "step": ["3f800000"]}]}]}]})";
}

TEST(OracleCheck, AnAdamwStepFromHandIsComparedOnEveryPath) {
    // 2 - 0.5 * (0.5/0.5) / sqrt(0.5/0.5) = 1.5
    EXPECT_EQ(check_content(adamw_case("3fc00000")).agreeing(), 2);
    const Tally wrong = check_content(adamw_case("3fc00010"));
    EXPECT_EQ(wrong.differing(), 2);
    EXPECT_THAT(wrong.first_differences().at(0),
                HasSubstr("one, single: step 1, parameter 0: p[0] expected 3fc00010"));
}

TEST(OracleCheck, AdamwArraysOfAnotherLengthDiffer) {
    EXPECT_EQ(check_content(adamw_case("3fc00000 3fc00000")).differing(), 2);
    EXPECT_EQ(check_content(adamw_case("")).differing(), 2);
}

TEST(OracleCheck, FilesThatAreNotComparedCountTheirRows) {
    EXPECT_EQ(check_content(R"({"cases": [{"case": "flags", "results": {"V0": {}, "V2": {}}}]})")
                  .not_supported(),
              2);
    EXPECT_EQ(check_content(R"({"doc": [], "entries": [{}, {}, {}]})").not_supported(), 3);
    EXPECT_EQ(check_content(R"({"doc": [], "scenarios": [{}]})").not_supported(), 1);
    EXPECT_EQ(check_content(R"({"python": "3.11", "cases": [{"id": "a"}]})").not_supported(), 1);
}

std::string read_data(const std::string& path) {
    std::ifstream file(std::string(SWAPLAB_TEST_DATA) + "/" + path);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

/// `content` with the first `from` replaced.
Tally check_changed(std::string content, const std::string& from, const std::string& to) {
    const std::size_t at = content.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return check_content(content.replace(at, from.size(), to));
}

/// `content`, which has one case per line, with the first case alone that holds `word`, behind
/// what stands before its cases.
std::string one_case(const std::string& content, const std::string& word) {
    const std::string key = "\"cases\": [\n";
    const std::size_t cases = content.find(key) + key.size();
    const std::size_t begin = content.rfind('\n', content.find(word, cases)) + 1;
    return content.substr(0, cases) + content.substr(begin, content.find(",\n", begin) - begin) +
           "]}";
}

TEST(OracleCheck, PlannerAgreesInEveryPlan) {
    const Tally tally = check_one("dcp/planner.json");
    EXPECT_EQ(tally.agreeing(), 2072);
    EXPECT_EQ(tally.not_supported(), 0);
    EXPECT_THAT(tally.first_differences(), IsEmpty());
}

TEST(OracleCheck, ResumesOnSpecimensAndOnOursAreWhatPytorchSaw) {
    const Tally tally = check_one("swap_adamw/resume_cases.json");
    EXPECT_EQ(tally.agreeing(), 492);
    EXPECT_EQ(tally.not_supported(), 67);
    EXPECT_THAT(tally.first_differences(), IsEmpty());
}

TEST(OracleCheck, ShardedSavesAndLoadsAreWhatPytorchSaw) {
    const Tally tally = check_one("swap_adamw/shard_cases.json");
    EXPECT_EQ(tally.agreeing(), 889);
    EXPECT_EQ(tally.not_supported(), 233);
    EXPECT_THAT(tally.first_differences(), IsEmpty());
}

TEST(OracleCheck, DeviceBytesOfLoadsAreWhatPytorchSaw) {
    const Tally tally = check_one("swap_adamw/cast_spy.json");
    EXPECT_EQ(tally.agreeing(), 16);
    EXPECT_EQ(tally.not_supported(), 56);
    EXPECT_THAT(tally.first_differences(), IsEmpty());
}

TEST(OracleCheck, OneChangedFigureOfACastDiffers) {
    EXPECT_EQ(check_changed(read_data("swap_adamw/cast_spy.json"),
                            "\"load_peak_over_before\":32832", "\"load_peak_over_before\":32833")
                  .differing(),
              1);
}

TEST(OracleCheck, ADirectoryIsWalkedAndCheckpointsMeetTheirExpectedFiles) {
    for (const char* set : {"dcp/checkpoints", "swap_adamw/checkpoints"}) {
        const auto tallies = check(set);
        EXPECT_EQ(tallies.size(), set[0] == 'd' ? 59U : 27U);
        for (const Tally& tally : tallies) {
            EXPECT_EQ(tally.kind(), "checkpoint");
            EXPECT_GT(tally.agreeing(), 20) << tally.file();
            EXPECT_THAT(tally.first_differences(), IsEmpty()) << tally.file();
            EXPECT_EQ(tally.not_supported(), 0) << tally.file();
        }
    }
}

TEST(OracleCheck, ACheckpointIsFoundFromEitherOfItsFiles) {
    const Tally by_directory = check_one("swap_adamw/checkpoints/v0_w2_even");
    const Tally by_file = check_one("swap_adamw/checkpoints/v0_w2_even.expected.json");
    EXPECT_EQ(by_directory.to_text(), by_file.to_text());
    EXPECT_EQ(check_one("dcp/checkpoints/single_hyper_odd").agreeing(),
              check_one("dcp/checkpoints/single_hyper_odd/expected.json").agreeing());
}

TEST(OracleCheck, AnUnknownFileIsNotSupportedAndNeverAgrees) {
    const Tally tally = check_content(R"({"something": "else"})");
    EXPECT_EQ(tally.agreeing(), 0);
    EXPECT_EQ(tally.not_supported(), 1);
}

TEST(OracleCheck, ABrokenFileDiffers) {
    for (const char* content : {"", "{", "[]x", R"({"torch": "2.8.0", "table": [[1]]})",
                                R"({"worlds": [1], "loads": 2})"}) {
        const Tally tally = check_content(content);
        EXPECT_EQ(tally.agreeing(), 0) << content;
        EXPECT_EQ(tally.differing(), 1) << content;
        EXPECT_THAT(tally.first_differences().at(0), HasSubstr("broken: ")) << content;
    }
}

TEST(OracleCheck, AFileWithoutARowDiffers) {
    for (const char* content :
         {R"({"torch": "2.8.0", "table": []})", R"({"worlds": [], "loads": []})",
          R"({"shapes": {}, "initial_params": {}, "gradients": [], "other_gradients": [],)"
          R"( "cases": []})"}) {
        EXPECT_THAT(check_content(content).first_differences(),
                    ElementsAre(HasSubstr("the file has no row")))
            << content;
    }
}

/// Inputs and expectations of a resume, each changed once.
TEST(OracleCheck, NoChangeOfAResumeIsTakenForAgreement) {
    const std::vector<std::pair<std::string, std::string>> changes{
        {R"("weight_decay":0.1,"eps")", R"("weight_decay":0.2,"eps")"},
        {R"("cached_group_is_live":false)", R"("cached_group_is_live":true)"},
        {R"("used_hp":{"lr":0.05)", R"("used_hp":{"lr":0.06)"},
        {R"("live_hp":{"lr":0.01)", R"("live_hp":{"lr":0.02)"},
        {R"("step":{"a":1.0)", R"("step":{"a":2.0)"},
        {R"("step":{"a":1.0)", R"("step":{"z":1.0,"a":1.0)"},
        {R"("state_dict":{"a":)", R"("state_dict":{"z":{"exp_avg":""},"a":)"},
        {R"("p":{"a":)", R"("p":{"z":"","a":)"},
        {R"("max_abs_param_diff":)", R"("max_abs_param_diff":1)"},
        {R"("difference":)", R"("difference, renamed":)"},
        {R"("kind":"fresh","cached_group_is_live":false,)", R"("kind":"fresh",)"},
        {R"("equals_uninterrupted":false)", R"("equals_uninterrupted":"no")"},
    };
    const std::string one = one_case(read_data("swap_adamw/resume_cases.json"), "\"N\"");
    EXPECT_EQ(check_content(one).differing(), 0);
    for (const auto& [from, to] : changes) {
        EXPECT_GE(check_changed(one, from, to).differing(), 1) << to;
    }
}

/// Inputs and expectations of a sharded save and its loads, each changed once.
TEST(OracleCheck, NoChangeOfAShardedRunIsTakenForAgreement) {
    const std::vector<std::pair<std::string, std::string>> changes{
        {R"("a.exp_avg":[1])", R"("a.exp_avg":[0])"},
        {R"("survivors":{)", R"("survivors":{"z.exp_avg":[0],)"},
        {R"("lost_elements_total":)", R"("lost_elements_total":1)"},
        {R"("saved_step":{)", R"("saved_step":{"z":"40400000",)"},
        {R"("ranks":[)", R"("ranks":[{"rank":0},)"},
        {R"({"rank":1,)", R"({"rank":0,)"},
        {R"("params_at_N":{)", R"("params_at_N":{"z":"",)"},
        {R"("moments_at_N":{)", R"("moments_at_N":{"z":{"exp_avg":""},)"},
        {R"("groups":[["a",)", R"("groups":[[)"},
        {R"("initial_params":{)", R"("initial_params":{"z":"",)"},
        {R"("betas":[0.9,)", R"("betas":[0.8,)"},
        {R"("repeat_run_is_bit_equal":true)", R"("repeat_run_is_bit_equal":false)"},
        {R"("device_copy":true,"dcp_load":"ok")", R"("device_copy":true,"dcp_load":{"error":"x"})"},
        {R"("used_hp":{"lr":0.05)", R"("used_hp":{"lr":0.06)"},
    };
    const std::string all = read_data("swap_adamw/shard_cases.json");
    const std::string one = one_case("{" + all.substr(all.find("\"cases\"")), "\"v0_w2_even\"");
    EXPECT_EQ(check_content(one).differing(), 0);
    for (const auto& [from, to] : changes) {
        EXPECT_GE(check_changed(one, from, to).differing(), 1) << to;
    }
}

/// V2 is right in every way of loading: a file that says otherwise must not pass as unsupported.
TEST(OracleCheck, WhetherARowIsSupportedIsNotDecidedByItsExpectation) {
    const Tally tally = check_changed(
        one_case(read_data("swap_adamw/resume_cases.json"), "\"N\""),
        R"("state_dict_equals_used_by_step":true},{"variant":"V2","kind":"stepped")",
        R"("state_dict_equals_used_by_step":false},{"variant":"V2","kind":"stepped")");
    EXPECT_EQ(tally.differing(), 1);
    EXPECT_EQ(tally.not_supported(), 1);  // the parameters in float64
}

TEST(OracleHex, BothSpellingsRead) {
    EXPECT_THAT(floats_from_tokens("3f800000 c0000000"), ElementsAre(1.0F, -2.0F));
    EXPECT_THAT(floats_from_hex("3f800000c0000000"), ElementsAre(1.0F, -2.0F));
    EXPECT_THAT(floats_from_hex(""), IsEmpty());
    EXPECT_EQ(hex_of({1.0F, -2.0F}), "3f800000c0000000");
    EXPECT_THROW((void)floats_from_hex("3f8"), sim::ArgumentError);
}

TEST(OracleHex, NearnessIsMeasuredAtTheLargestSummand) {
    const float next = std::nextafter(1.0F, 2.0F);
    EXPECT_TRUE(is_near(next, 1.0F, 1.0, 1));
    EXPECT_FALSE(is_near(next, 1.0F, 0.5, 1));
    EXPECT_TRUE(is_near(1.0e-9F, 0.0F, 1.0, 1));
    const float nan = std::numeric_limits<float>::quiet_NaN();
    const float inf = std::numeric_limits<float>::infinity();
    EXPECT_TRUE(is_near(nan, nan, 1.0, 4));
    EXPECT_FALSE(is_near(nan, 1.0F, 1.0, 4));
    EXPECT_TRUE(is_near(inf, inf, 1.0, 4));
    EXPECT_FALSE(is_near(inf, -inf, 1.0, 4));
}

}  // namespace
}  // namespace swaplab::oracle
