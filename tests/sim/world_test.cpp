/// What fibers promise beyond the contract of all worlds (world_contract_test.cpp).

#include "swaplab/sim/world.hpp"

#include "swaplab/sim/error.hpp"

namespace swaplab::sim {
namespace {

using ::testing::HasSubstr;

TEST(World, TheSeedDecidesWhoRunsFirst) {
    const auto order_of = [](std::uint64_t seed) {
        std::string order;
        rethrow_first(run_ranks({.size = 4, .seed = seed}, [&](Communicator& world) {
            for (int round = 0; round < 4; ++round) {
                order += std::to_string(world.rank());
                world.barrier();
            }
        }));
        return order;
    };
    EXPECT_EQ(order_of(1), order_of(1));
    EXPECT_NE(order_of(1), order_of(2));
}

TEST(World, AnExceptionBeingHandledStaysWithItsRank) {
    rethrow_first(run_ranks({.size = 3}, [](Communicator& world) {
        const std::string mine = std::to_string(world.rank());
        try {
            throw ArgumentError(mine);
        } catch (const ArgumentError&) {
            world.barrier();
            try {
                throw;
            } catch (const ArgumentError& again) {
                EXPECT_EQ(again.what(), mine);
            }
        }
        world.barrier();
        EXPECT_EQ(std::uncaught_exceptions(), 0);
        EXPECT_EQ(std::current_exception(), nullptr);
    }));
}

TEST(World, TextsNameRankSequenceAndCallSite) {
    const auto results = run_ranks({.size = 2}, [](Communicator& world) {
        world.rank() == 0 ? world.barrier() : static_cast<void>(world.all_gather({}));
    });
    try {
        rethrow_first(results);
        FAIL() << "no error";
    } catch (const CollectiveMismatch& error) {
        EXPECT_THAT(error.what(), HasSubstr("rank 0: barrier 1 (world_test.cpp:"));
        EXPECT_THAT(error.what(), HasSubstr("rank 1: all_gather 1 (world_test.cpp:"));
    }
}

TEST(World, AWorldInsideARankRunsToItsEnd) {
    rethrow_first(run_ranks({.size = 2}, [](Communicator& outer) {
        int sum = 0;
        rethrow_first(run_ranks({.size = 3}, [&](Communicator& inner) {
            inner.barrier();
            sum += inner.rank();
        }));
        outer.barrier();
        EXPECT_EQ(sum, 3);
    }));
}

}  // namespace
}  // namespace swaplab::sim
