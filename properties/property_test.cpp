#include "property.hpp"

#include "model.hpp"

#include <gtest/gtest-spi.h>

#include <set>
#include <sstream>

namespace swaplab::properties {
namespace {

TEST(PropertyRunner, RunsAsManyCasesAsAskedFor) {
    int cases = 0;
    const Verdict verdict = check("a", 25, [&](const Story&) { ++cases; });
    EXPECT_TRUE(verdict.held) << verdict.text;
    EXPECT_EQ(cases, 25);
}

TEST(PropertyRunner, NoCaseIsNotEnough) {
    EXPECT_FALSE(check("a", 0, [](const Story&) {}).held);
}

TEST(PropertyRunner, AFailureShowsASmallStoryAndHowToRunItAgain) {
    const Verdict verdict =
        check("Suite.Name", 50, [](const Story& story) { PROP_TRUE(story.slots < 2, "too many"); });
    EXPECT_FALSE(verdict.held);
    EXPECT_THAT(verdict.text, ::testing::HasSubstr("slots = 2,"));
    EXPECT_THAT(verdict.text, ::testing::HasSubstr("too many"));
    EXPECT_THAT(verdict.text, ::testing::HasSubstr("--gtest_filter=Suite.Name"));
    EXPECT_THAT(verdict.text, ::testing::Not(::testing::HasSubstr("not deterministic")));
}

TEST(PropertyRunner, AFailureThatDoesNotRepeatIsSaidToBeNone) {
    bool first = true;
    const Verdict verdict =
        check("a", 5, [&](const Story&) { PROP_TRUE(!std::exchange(first, false), "once"); });
    EXPECT_FALSE(verdict.held);
    EXPECT_THAT(verdict.text, ::testing::HasSubstr("not deterministic"));
}

void look_for_wanted(const Property& property) {
    must_be_caught(property, "wanted");
}

TEST(PropertyRunner, AFaultIsCaughtByItsOwnFailureOnly) {
    look_for_wanted([](const Story& story) { PROP_TRUE(story.slots < 3, "wanted"); });
    EXPECT_NONFATAL_FAILURE(look_for_wanted([](const Story&) {}), "no story fails");
    EXPECT_NONFATAL_FAILURE(look_for_wanted([](const Story&) { PROP_TRUE(false, "another"); }),
                            "one failed with: false: another");
    EXPECT_NONFATAL_FAILURE(
        look_for_wanted([](const Story&) { throw std::runtime_error("wanted"); }),
        "one failed with: wanted");
}

TEST(PropertyRunner, PropertiesDrawDifferentStories) {
    std::set<std::string> shown;
    for (const char* name : {"a", "b"}) {
        std::ostringstream all;
        (void)check(name, 20, [&](const Story& story) { showValue(story, all); });
        shown.insert(all.str());
    }
    EXPECT_EQ(shown.size(), 2U);
}

/// The generator reaches the corners that the properties are about.
TEST(Stories, CoverTheCorners) {
    std::map<std::string, int> seen;
    (void)check("corners", 200, [&](const Story& story) {
        seen["4 ranks"] += world_size(story.load_mesh) == 4 ? 1 : 0;
        seen["other world"] += story.mesh != story.load_mesh ? 1 : 0;
        seen["in memory"] += story.via == Story::Via::memory ? 1 : 0;
        seen["saved before the first step"] += story.steps_before == 0 ? 1 : 0;
        seen["running optimizer"] += story.restart ? 0 : 1;
        seen["late group"] += story.last_group_joins_late ? 1 : 0;
        for (const StoryGroup& group : story.groups) {
            seen["amsgrad"] += group.options.amsgrad ? 1 : 0;
            for (const StoryParam& param : group.params) {
                const std::int64_t elements = optim::numel(param.shape);
                seen["0 elements"] += elements == 0 ? 1 : 0;
                seen["1 element"] += elements == 1 ? 1 : 0;
                seen["split over buckets"] += elements > story.bucket_elements ? 1 : 0;
                seen["absent gradient"] += param.absent != 0 ? 1 : 0;
            }
        }
    });
    EXPECT_EQ(seen.size(), 11U);
    for (const auto& [corner, count] : seen) {
        EXPECT_GE(count, 10) << corner;
    }
}

TEST(Model, EveryElementHasAsManyHoldersAsTheMeshReplicates) {
    using optim::Placement;
    const std::vector<Placement> rows{Placement::shard(0)};
    EXPECT_EQ(coverage_fault({1, 1}, {2}, rows), "");
    EXPECT_EQ(coverage_fault({1, 0}, {2}, rows), "element 1 is on 0 ranks, expected 1");
    EXPECT_EQ(coverage_fault({1, 2}, {2}, rows), "element 1 is on 2 ranks, expected 1");
    EXPECT_EQ(coverage_fault({3}, {2, 3}, {Placement::shard(0), Placement::replicate()}), "");
    EXPECT_EQ(coverage_fault({2}, {3}, {Placement::replicate()}),
              "element 0 is on 2 ranks, expected 3");
    EXPECT_EQ(coverage_fault({}, {4}, rows), "");
}

TEST(Model, DifferenceNamesTheFirstElement) {
    GlobalStates expected;
    expected["p"].param = {1.0F, 2.0F};
    GlobalStates found = expected;
    EXPECT_EQ(difference(expected, found), "");
    found["p"].param[1] = 3.0F;
    EXPECT_EQ(difference(expected, found),
              "p.param, element 1: expected 40000000 (2), found 40400000 (3)");
}

}  // namespace
}  // namespace swaplab::properties
