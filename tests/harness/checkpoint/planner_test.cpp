#include "checkpoint/planner.hpp"

#include "checkpoint/rank_set.hpp"
#include "support/planner_expectation.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

namespace swaplab::tests {
namespace {

TEST(Planner, AgreesWithPytorchInEveryWorldAndLoadPair) {
    std::ifstream file(SWAPLAB_TEST_DATA "/dcp/planner.json");
    const ExpectationResult result =
        check_planner({std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()});
    EXPECT_THAT(result.differing, testing::IsEmpty());
    EXPECT_GE(result.agreeing, 1000U);
}

TEST(Planner, TiesFollowTheSetOrderOfCpython) {
    using harness::set_order;
    EXPECT_EQ(set_order({0, 1}), (std::vector<int>{0, 1}));
    EXPECT_EQ(set_order({1, 9}), (std::vector<int>{1, 9}));
    EXPECT_EQ(set_order({7, 15}), (std::vector<int>{15, 7}));
    EXPECT_EQ(set_order({3, 8}), (std::vector<int>{8, 3}));
    EXPECT_EQ(set_order({}), std::vector<int>{});
}

}  // namespace
}  // namespace swaplab::tests
