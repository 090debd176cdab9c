#include "scenario/judge/judge.hpp"

#include "scenario/judge/verdict.hpp"
#include "scenario/language/scenario_file.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cstring>

namespace swaplab::harness::scenario {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::StartsWith;

constexpr const char* head =
    "scenario.name = \"n\"\nscenario.why = \"w\"\nworld.size = 2\n"
    "param = [{ name = \"a\", shape = [4], placements = [\"Shard(0)\"] }]\n"
    "case = [{ optimizer = \"swap_adamw\", verdict = \"passes\" }]\n";

Expectation expectation_of(const std::string& expect) {
    const ScenarioFile file =
        parse_scenario("it.toml", head + ("step = [{ train = 2, " + expect + " }]\n"));
    EXPECT_FALSE(file.diagnostics.has_errors()) << format(file.diagnostics.all().front(), "", "");
    return file.runs.at(0).steps.at(0).expect.at(0);
}

CapturedTensor tensor(const std::vector<float>& values, bool sharded) {
    CapturedTensor out;
    out.local_shape = sharded ? optim::Shape{2} : optim::Shape{};
    out.global_shape = sharded ? optim::Shape{4} : optim::Shape{};
    if (sharded) {
        out.shard = optim::ShardSpec{{4}, {2}, {optim::Placement::shard(0)}, {}};
    }
    out.bytes.resize(values.size() * sizeof(float));
    std::memcpy(out.bytes.data(), values.data(), out.bytes.size());
    return out;
}

RankState state(float a0, float a1, float step) {
    RankState out;
    out.params["a"] = tensor({a0, a1}, true);
    for (CapturedView& view : out.views) {
        view.state["a"]["exp_avg"] = tensor({a1, a0}, true);
        view.state["a"]["step"] = tensor({step}, false);
        optim::Dict group;
        group.set("lr", 0.5);
        view.groups = {group};
    }
    return out;
}

/// Made-up records of one train step on two ranks.
class Seen {
  public:
    Seen() {
        records_.complete = true;
        records_.steps.resize(1);
        records_.steps[0].ranks.resize(2);
        for (int rank = 0; rank < 2; ++rank) {
            const auto base = static_cast<float>(2 * rank + 1);
            StepRecord& record = this->rank(rank);
            record.reached = true;
            record.ended = true;
            record.before = state(base, base + 1, 0);
            record.after = state(base + 10, base + 11, 2);
            record.memory[0].before = {100, 512};
            record.memory[0].peak = {164, 768};
            record.memory[0].now = {100, 512};
            record.memory[0].tags_before = {{"a", {100, 512}}};
            record.memory[0].tags_at_peak = {{"a", {100, 512}}, {"slot", {64, 256}}};
            record.memory[0].tags_now = {{"a", {100, 512}}};
            record.worst = record.memory[0];
            record.worst->peak.requested = 228;
            record.worst->tags_at_peak["slot 1"] = {64, 256};
            record.occupied[0].peak.requested = 160;
            record.units.params = 8;
            record.units.grads = 8;
            record.units.ring = 64;
            record.trace = {{"copy h2d", "upload", "arena", 0, 64, {}},
                            {"copy d2h", "download", "arena", 0, 64, {}}};
            records_.start.push_back(record.before);
        }
    }

    StepRecord& rank(int rank) { return records_.steps[0].ranks[static_cast<std::size_t>(rank)]; }
    Records& records() { return records_; }

    Check judge(const std::string& expect) { return judge(expectation_of(expect)); }
    Check judge(const Expectation& expectation) {
        const ScenarioFile file = parse_scenario(
            "it.toml", head + std::string("step = [{ train = 2, expect.error.naming = \"x\" }]\n"));
        const auto no_twin = [](const History&, const SetUp&, bool) {
            Twin twin;
            twin.problem = "none here";
            return twin;
        };
        return Judge(file.runs.at(0), records_, no_twin).judge(expectation, 0);
    }

  private:
    Records records_;
};

TEST(Judge, HoldsAnExactPeakAndFailsOneByteOff) {
    Seen seen;
    EXPECT_TRUE(seen.judge("expect.device.peak = \"164 B\"").ok);
    EXPECT_TRUE(seen.judge("expect.device.rise = \"1 ring\"").ok);
    for (const char* other : {"163 B", "165 B"}) {
        const Check check = seen.judge("expect.device.peak = \"" + std::string(other) + "\"");
        EXPECT_FALSE(check.ok);
        EXPECT_EQ(check.measured, 164);
        EXPECT_THAT(check.details.back(), HasSubstr("slot 64"));
    }
}

TEST(Judge, ShowsWhatWasObservedNextToAWorstPeak) {
    Seen seen;
    EXPECT_TRUE(seen.judge("expect.device.worst.peak = \"228 B\"").ok);
    EXPECT_TRUE(seen.judge("expect.device.worst.rise.at_most = \"128 B\"").ok);
    EXPECT_TRUE(seen.judge("expect.device = { tag = \"slot*\", worst.peak = \"128 B\" }").ok);
    const Check check = seen.judge("expect.device.worst.peak = \"164 B\"");
    EXPECT_FALSE(check.ok);
    EXPECT_EQ(check.measured, 228);
    EXPECT_THAT(check.summary, HasSubstr("device worst peak 228 B"));
    EXPECT_THAT(check.details, Contains(HasSubstr("occupied at most 160 B and charged 164 B")));
}

TEST(Judge, KnowsEveryRelationOfFigures) {
    Seen seen;
    EXPECT_TRUE(seen.judge("expect.device.peak.at_most = \"164 B\"").ok);
    EXPECT_FALSE(seen.judge("expect.device.peak.at_most = \"163 B\"").ok);
    EXPECT_TRUE(seen.judge("expect.device.peak.at_least = \"164 B\"").ok);
    EXPECT_FALSE(seen.judge("expect.device.peak.at_least = \"165 B\"").ok);
    EXPECT_TRUE(seen.judge("expect.device.kept = \"0 B\"").ok);
    EXPECT_TRUE(seen.judge("expect.device.rounded.peak = \"768 B\"").ok);
    EXPECT_TRUE(seen.judge("expect.device = { tag = \"sl*\", peak = \"64 B\" }").ok);
    EXPECT_TRUE(seen.judge("expect.device = { rank = \"sum\", peak = \"328 B\" }").ok);
    EXPECT_TRUE(seen.judge("expect.h2d = { count = 1 }").ok);
    EXPECT_TRUE(seen.judge("expect.d2h.bytes = \"64 B\"").ok);
    EXPECT_TRUE(seen.judge("expect.h2d = { above = \"64 B\", count = 0 }").ok);
    EXPECT_TRUE(seen.judge("expect.h2d = { up_to = \"64 B\", count = 1 }").ok);
}

TEST(Judge, FailsABoundThatIsNoWholeNumber) {
    Seen seen;
    for (const char* rank : {"", "rank = \"sum\", "}) {
        const Check check = seen.judge("expect.device = { " + std::string(rank) +
                                       "peak.at_least = \"0.03 params\" }");
        EXPECT_FALSE(check.ok);
        EXPECT_THAT(check.summary, HasSubstr("no whole number"));
    }
}

TEST(Judge, ComparesParametersWhichHaveNoViews) {
    Seen seen;
    EXPECT_FALSE(seen.judge("expect.params.same_as = \"before\"").ok);
}

TEST(Judge, LooksAtEveryRank) {
    Seen seen;
    seen.rank(1).memory[0].peak.requested = 165;
    const Check check = seen.judge("expect.device.peak = \"164 B\"");
    EXPECT_FALSE(check.ok);
    EXPECT_THAT(check.summary, HasSubstr("rank 1"));
    EXPECT_TRUE(seen.judge("expect.device = { rank = [0], peak = \"164 B\" }").ok);
}

TEST(Judge, FindsTheFirstDifferingElementWithItsOwner) {
    Seen seen;
    for (int rank = 0; rank < 2; ++rank) {
        seen.rank(rank).after = seen.rank(rank).before;
    }
    EXPECT_TRUE(seen.judge("expect.everything.same_as = \"start\"").ok);
    const float next = std::bit_cast<float>(std::bit_cast<std::uint32_t>(3.0F) + 3U);
    seen.rank(1).after.params["a"] = tensor({next, 4.0F}, true);
    const Check check = seen.judge("expect.params.same_as = \"start\"");
    EXPECT_FALSE(check.ok);
    ASSERT_TRUE(check.first.has_value());
    EXPECT_EQ(check.first->rank, 1);
    EXPECT_EQ(check.first->index, "[2]");
    EXPECT_EQ(check.first->ulp, 3U);
    EXPECT_EQ(check.first->expected_bits, "40400000");
    EXPECT_EQ(check.measured, 1);
}

TEST(Judge, TellsMinusZeroFromZeroAndTakesAnyNanForAnyNan) {
    Seen seen;
    seen.rank(0).before = seen.rank(0).after = state(0.0F, 1.0F, 0);
    seen.rank(1).after = seen.rank(1).before;
    seen.rank(0).after.params["a"] = tensor({-0.0F, 1.0F}, true);
    EXPECT_FALSE(seen.judge("expect.params.same_as = \"before\"").ok);
    const float nan = std::bit_cast<float>(0x7fc00000U);
    const float other_nan = std::bit_cast<float>(0xffc00001U);
    seen.rank(0).before.params["a"] = tensor({nan, 1.0F}, true);
    seen.rank(0).after.params["a"] = tensor({other_nan, 1.0F}, true);
    EXPECT_TRUE(seen.judge("expect.params.same_as = \"before\"").ok);
}

TEST(Judge, LooksAtBothViewsUnlessOneIsChosen) {
    Seen seen;
    for (int rank = 0; rank < 2; ++rank) {
        seen.rank(rank).after = seen.rank(rank).before;
    }
    seen.rank(0).after.views[1].state["a"]["exp_avg"] = tensor({9.0F, 9.0F}, true);
    EXPECT_FALSE(seen.judge("expect.moments.same_as = \"before\"").ok);
    EXPECT_TRUE(seen.judge("expect.moments = { view = \"step\", same_as = \"before\" }").ok);
}

TEST(Judge, ComparesValuesOfStepsAndGroups) {
    Seen seen;
    EXPECT_TRUE(seen.judge("expect.steps.is = 2").ok);
    EXPECT_FALSE(seen.judge("expect.steps.is = { a = 3 }").ok);
    EXPECT_TRUE(seen.judge("expect.groups.is = { lr = 0.5 }").ok);
    EXPECT_FALSE(seen.judge("expect.groups.is = { lr = 0.25 }").ok);
}

TEST(Judge, SeesReplicasThatDiffer) {
    Seen seen;
    seen.rank(1).after.views[0].state["a"]["step"] = tensor({3.0F}, false);
    EXPECT_FALSE(seen.judge("expect.steps.is = 2").ok);
}

TEST(Judge, WantsEveryTensorToDiffer) {
    Seen seen;
    EXPECT_TRUE(seen.judge("expect.params.differs_from = \"before\"").ok);
    seen.rank(0).after.params["a"] = seen.rank(0).before.params["a"];
    EXPECT_TRUE(seen.judge("expect.params.differs_from = \"before\"").ok);
    EXPECT_FALSE(
        seen.judge("expect.params = { differs_from = \"before\", elements = \"all\" }").ok);
}

StepError refusal() {
    return {"rejected",
            {{"parameter", "a"},
             {"key", "optimizer.state.a.exp_avg"},
             {"found", "[6,2]"},
             {"rank", "rank 0"}},
            "refused"};
}

TEST(Judge, AcceptsARefusalThatNamesAndChangesNothing) {
    Seen seen;
    const std::string expect =
        "expect.refused.naming = [\"a\", \"exp_avg\", \"[6, 2]\", \"rank 0\"]";
    for (int rank = 0; rank < 2; ++rank) {
        seen.rank(rank).error = refusal();
        seen.rank(rank).after = seen.rank(rank).before;
    }
    EXPECT_TRUE(seen.judge(expect).ok) << seen.judge(expect).summary;
    EXPECT_FALSE(seen.judge("expect.refused.naming = [\"b\"]").ok);
    EXPECT_FALSE(seen.judge("expect.refused.naming = [\"refused\"]").ok);  // text is no field
    EXPECT_FALSE(seen.judge("expect.refused = { kind = \"corrupt\", naming = [\"a\"] }").ok);

    seen.rank(1).memory[1].now.requested = 1;
    EXPECT_THAT(seen.judge(expect).summary, HasSubstr("changed pinned memory"));
    seen.rank(1).memory[1].now.requested = 0;
    seen.rank(1).after.params["a"].bytes[0] ^= std::byte{1};
    EXPECT_THAT(seen.judge(expect).summary, HasSubstr("changed parameter a"));
    seen.rank(1).after = seen.rank(1).before;
    seen.rank(1).after.views[0].state["a"]["exp_avg"].address =
        seen.rank(1).after.params["a"].bytes.data();
    EXPECT_THAT(seen.judge(expect).summary, HasSubstr("changed a.exp_avg"));
    seen.rank(1).after = seen.rank(1).before;
    seen.rank(1).error.reset();
    EXPECT_THAT(seen.judge(expect).summary, HasSubstr("rank 1 ran to its end"));
}

TEST(Judge, WantsTornStateMarked) {
    Seen seen;
    const std::string expect =
        "expect.error = { kind = \"rejected\", naming = [\"a\"], leaves = \"torn\" }";
    for (int rank = 0; rank < 2; ++rank) {
        seen.rank(rank).error = refusal();
        seen.rank(rank).after.torn = true;
    }
    EXPECT_TRUE(seen.judge(expect).ok);
    seen.rank(1).after.torn = false;
    EXPECT_FALSE(seen.judge(expect).ok);
}

TEST(Judge, WantsErrorsOnTheNamedRanksOnly) {
    Seen seen;
    seen.rank(1).error = refusal();
    seen.rank(1).after = seen.rank(1).before;
    EXPECT_TRUE(seen.judge("expect.error = { naming = [\"a\"], on = [1] }").ok);
    EXPECT_FALSE(seen.judge("expect.error = { naming = [\"a\"], on = [0] }").ok);
    EXPECT_FALSE(seen.judge("expect.error = { naming = [\"a\"] }").ok);
}

TEST(Judge, SaysEachLineOfAnErrorOnce) {
    Seen seen;
    const Expectation runs;
    seen.rank(0).error = refusal();
    EXPECT_EQ(seen.judge(runs).summary, "rank 0: " + refusal().text);
    EXPECT_THAT(seen.judge(runs).details, testing::IsEmpty());
    seen.rank(0).error->text += "\n  do  this";
    EXPECT_EQ(seen.judge(runs).summary, "rank 0: " + refusal().text);
    EXPECT_THAT(seen.judge(runs).details, testing::ElementsAre("error      do  this"));
}

TEST(Judge, AllowsNoFindingUnlessExpected) {
    Seen seen;
    const std::string expect = "expect.findings.is = [\"race\"]";
    EXPECT_FALSE(seen.judge(expect).ok);
    seen.rank(1).findings.push_back({sim::FindingKind::race, "two copies race", {}});
    EXPECT_TRUE(seen.judge(expect).ok);
    seen.rank(1).findings.push_back({sim::FindingKind::leak, "leaked", {}});
    EXPECT_FALSE(seen.judge(expect).ok);
}

TEST(Opposite, OfWhatHoldsFails) {
    Seen seen;
    for (const char* expect :
         {"expect.device.peak = \"164 B\"", "expect.device.peak.at_most = \"200 B\"",
          "expect.device.peak.at_least = \"1 B\"", "expect.params.differs_from = \"before\"",
          "expect.steps.is = { a = 2 }", "expect.groups.is = { lr = 0.5 }",
          "expect.buffers.kind = \"host\"", "expect.h2d.count = 1"}) {
        const Expectation expectation = expectation_of(expect);
        EXPECT_TRUE(seen.judge(expectation).ok) << expect;
        EXPECT_FALSE(seen.judge(opposite(expectation)).ok) << expect;
    }
}

TEST(Ulp, CountsRepresentableValues) {
    EXPECT_EQ(ulp_distance(1.0F, 1.0F), 0U);
    EXPECT_EQ(ulp_distance(0.0F, -0.0F), 1U);
    EXPECT_EQ(ulp_distance(1.0F, std::bit_cast<float>(0x3f800005U)), 5U);
    EXPECT_EQ(ulp_distance(std::bit_cast<float>(0x3d198ff1U), std::bit_cast<float>(0x3d0ce17bU)),
              831094U);
}

Check check_of(const std::string& path, bool ok, std::optional<std::int64_t> measured = {}) {
    Check check;
    check.path = path;
    check.reached = true;
    check.ok = ok;
    check.subject = Subject::cover;
    check.unit = "elements";
    check.measured = measured;
    return check;
}

CaseSpec failing(std::optional<std::int64_t> found) {
    CaseSpec which;
    FailSpec fail;
    fail.path = "save.cover.missing";
    if (found) {
        fail.found = make_integer(*found, {});
    }
    which.fails = {fail};
    return which;
}

TEST(Verdict, IsCaughtWhenExactlyTheNamedExpectationFails) {
    const auto status = [](const CaseSpec& which, std::vector<Check> checks) {
        return conclude(which, std::move(checks)).status;
    };
    const Check fails = check_of("save.cover.missing", false, 60);
    const Check holds = check_of("save.cover.missing", true, 0);
    const Check also = check_of("load.runs", false);
    EXPECT_EQ(status(failing({}), {fails}), Status::caught);
    EXPECT_EQ(status(failing(60), {fails}), Status::caught);
    EXPECT_EQ(status(failing(61), {fails}), Status::fail);
    EXPECT_EQ(status(failing({}), {holds}), Status::fail);
    EXPECT_EQ(status(failing({}), {fails, also}), Status::fail);
    EXPECT_EQ(status({}, {holds}), Status::pass);
    EXPECT_EQ(status({}, {fails}), Status::fail);
}

TEST(Verdict, CallsReportedWhatADefectDoesOnly) {
    const Check fails = check_of("save.cover.missing", false, 60);
    CaseSpec which = failing({});
    EXPECT_THAT(conclude(which, {fails}).headline, StartsWith("as the case says: "));
    which.defects = {"local_moments"};
    EXPECT_THAT(conclude(which, {fails}).headline, StartsWith("as reported: "));
}

TEST(Verdict, OfARunThatWasNotLookedAtToItsEndIsNoPass) {
    Check unreached = check_of("train-2.params", false);
    unreached.reached = false;
    const Check holds = check_of("save.cover.missing", true, 0);
    const Check fails = check_of("save.cover.missing", false, 60);
    const Verdict cut = conclude({}, {holds, unreached});
    EXPECT_EQ(cut.status, Status::fail);
    EXPECT_THAT(cut.headline, HasSubstr("train-2.params was not reached"));
    EXPECT_EQ(conclude({}, {}).status, Status::fail);
    EXPECT_EQ(conclude(failing({}), {fails, unreached}).status, Status::caught);
}

}  // namespace
}  // namespace swaplab::harness::scenario
