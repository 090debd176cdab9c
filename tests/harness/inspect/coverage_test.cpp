#include "inspect/coverage.hpp"

namespace swaplab::harness {
namespace {

using optim::Box;
using Copies = std::map<int, std::int64_t>;

TEST(Coverage, AnExactTilingCoversEveryElementOnce) {
    const Coverage c = cover({5, 3}, {{{0, 0}, {2, 3}}, {{2, 0}, {3, 1}}, {{2, 1}, {3, 2}}});
    EXPECT_EQ(c.copies, (Copies{{1, 15}}));
    EXPECT_EQ(c.first_gap, std::nullopt);
    EXPECT_EQ(c.first_overlap, std::nullopt);
}

TEST(Coverage, AGapIsCountedAndPlaced) {
    const Coverage c = cover({4, 3}, {{{0, 0}, {4, 1}}, {{0, 2}, {3, 1}}});
    EXPECT_EQ(c.covered(), 7);
    EXPECT_EQ(c.first_gap, (Box{{0, 1}, {3, 1}}));
}

TEST(Coverage, AnOverlapIsCountedEvenWhenTheVolumeIsRight) {
    const Coverage c = cover({4}, {{{0}, {2}}, {{1}, {2}}});
    EXPECT_EQ(c.covered_twice_or_more(), 1);
    EXPECT_EQ(c.covered(), 3);
    EXPECT_EQ(c.first_overlap, (Box{{1}, {1}}));
}

TEST(Coverage, AZeroDimTensorHasOneElement) {
    EXPECT_EQ(cover({}, {{{}, {}}}).copies, (Copies{{1, 1}}));
    EXPECT_EQ(cover({}, {}).copies, (Copies{{0, 1}}));
}

TEST(Coverage, EmptyBoxesAndEmptyTensorsCoverNothing) {
    EXPECT_EQ(cover({4}, {{{4}, {0}}, {{0}, {4}}}).copies, (Copies{{1, 4}}));
    EXPECT_EQ(cover({0, 3}, {{{0, 0}, {0, 3}}}).copies, Copies{});
}

TEST(Coverage, BoxesWhoseBordersCrossTooOftenAreNotCounted) {
    std::vector<Box> nested;
    for (std::int64_t i = 0; i < 40; ++i) {
        nested.push_back({optim::Shape(8, i), optim::Shape(8, 90 - i)});
    }
    EXPECT_FALSE(cover(optim::Shape(8, 90), nested).complete);
}

TEST(Coverage, ManyRowsAreCountedToTheEnd) {
    std::vector<Box> rows;
    for (std::int64_t i = 0; i < 100'000; ++i) {
        rows.push_back({{i, 0}, {1, 4}});
    }
    const Coverage c = cover({100'000, 4}, rows);
    EXPECT_TRUE(c.complete);
    EXPECT_EQ(c.copies, (Copies{{1, 400'000}}));
}

TEST(Coverage, ABoxOutsideOfTheTensorIsSeen) {
    EXPECT_TRUE(is_inside({{7, 0}, {0, 2}}, {7, 2}));
    EXPECT_FALSE(is_inside({{6, 0}, {2, 2}}, {7, 2}));
    EXPECT_FALSE(is_inside({{-1, 0}, {2, 2}}, {7, 2}));
    EXPECT_FALSE(is_inside({{0}, {7}}, {7, 2}));
    EXPECT_FALSE(is_inside({{1}, {INT64_MAX}}, {7}));
}

}  // namespace
}  // namespace swaplab::harness
