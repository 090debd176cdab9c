#include "swaplab/sim/world.hpp"

#include "swaplab/sim/error.hpp"

#include <numeric>

namespace swaplab::sim {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Bytes bytes_of(std::string_view text) {
    const auto* begin = reinterpret_cast<const std::byte*>(text.data());
    return {begin, begin + text.size()};
}

std::span<std::byte> writable_bytes(std::string& text) {
    return std::as_writable_bytes(std::span(text.data(), text.size()));
}

template <class Exception>
ErrorFields fields_of(const RankResult& result) {
    try {
        std::rethrow_exception(result.error);
    } catch (const Exception& error) {
        return error.fields();
    }
}

using Collective = std::function<void(Communicator&)>;

std::vector<std::pair<std::string, Collective>> every_collective() {
    return {
        {"barrier", [](Communicator& world) { world.barrier(); }},
        {"broadcast",
         [](Communicator& world) {
             std::string data = "xy";
             world.broadcast(writable_bytes(data), 0);
         }},
        {"all_gather",
         [](Communicator& world) { static_cast<void>(world.all_gather(bytes_of("a"))); }},
        {"gather", [](Communicator& world) { static_cast<void>(world.gather(bytes_of("a"), 0)); }},
        {"all_reduce sum",
         [](Communicator& world) {
             double value = 1;
             world.all_reduce(std::span(&value, 1), ReduceOp::sum);
         }},
        {"all_gather_object",
         [](Communicator& world) { static_cast<void>(world.all_gather_object("a")); }},
    };
}

class WorldSizes : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Sizes, WorldSizes, ::testing::Values(1, 2, 3, 7, 64));

TEST_P(WorldSizes, AllGatherReturnsUnevenPartsInRankOrder) {
    rethrow_first(run_ranks({GetParam()}, [](Communicator& world) {
        const std::string mine(static_cast<std::size_t>(world.rank()), 'x');
        const std::vector<Bytes> all = world.all_gather(bytes_of(mine));
        ASSERT_EQ(all.size(), static_cast<std::size_t>(world.size()));
        for (std::size_t rank = 0; rank < all.size(); ++rank) {
            EXPECT_EQ(all[rank], bytes_of(std::string(rank, 'x')));
        }
    }));
}

TEST_P(WorldSizes, BroadcastHandsEverybodyTheRootsBytes) {
    rethrow_first(run_ranks({GetParam()}, [](Communicator& world) {
        const int root = world.size() - 1;
        std::string data = std::to_string(world.rank() % 10);
        world.broadcast(writable_bytes(data), root);
        EXPECT_EQ(data, std::to_string(root % 10));
    }));
}

TEST_P(WorldSizes, GatherGivesThePartsToTheRootOnly) {
    rethrow_first(run_ranks({GetParam()}, [](Communicator& world) {
        const auto all = world.gather(bytes_of(std::to_string(world.rank())), 0);
        if (world.rank() != 0) {
            EXPECT_TRUE(all.empty());
            return;
        }
        ASSERT_EQ(all.size(), static_cast<std::size_t>(world.size()));
        EXPECT_EQ(all.back(), bytes_of(std::to_string(world.size() - 1)));
    }));
}

TEST_P(WorldSizes, AllReduceAddsAndComparesEveryElement) {
    rethrow_first(run_ranks({GetParam()}, [](Communicator& world) {
        const std::int64_t n = world.size();
        std::vector<std::int64_t> sums{world.rank(), 1};
        world.all_reduce(std::span(sums), ReduceOp::sum);
        EXPECT_THAT(sums, ElementsAre(n * (n - 1) / 2, n));
        std::vector<double> extremes{static_cast<double>(world.rank())};
        world.all_reduce(std::span(extremes), ReduceOp::max);
        EXPECT_EQ(extremes[0], static_cast<double>(n - 1));
        extremes[0] = world.rank();
        world.all_reduce(std::span(extremes), ReduceOp::min);
        EXPECT_EQ(extremes[0], 0.0);
    }));
}

TEST_P(WorldSizes, ObjectsComeInRankOrder) {
    rethrow_first(run_ranks({GetParam()}, [](Communicator& world) {
        const std::string mine = world.rank() == 0 ? "" : std::to_string(world.rank());
        const auto all = world.all_gather_object(mine);
        ASSERT_EQ(all.size(), static_cast<std::size_t>(world.size()));
        EXPECT_EQ(all.front(), "");
        EXPECT_EQ(all[static_cast<std::size_t>(world.rank())], mine);
    }));
}

TEST(World, SumsAreMadeInAscendingRankOrder) {
    const std::vector<double> parts{1e16, 1.0, -1e16, 1.0};
    const double expected = std::accumulate(parts.begin() + 1, parts.end(), parts[0]);
    rethrow_first(run_ranks({4}, [&](Communicator& world) {
        double value = parts[static_cast<std::size_t>(world.rank())];
        world.all_reduce(std::span(&value, 1), ReduceOp::sum);
        EXPECT_EQ(value, expected);
    }));
}

TEST(World, SizesOutOfRangeAreRefusedWithTheLimits) {
    for (const int size : {0, -1, 65}) {
        EXPECT_THROW(static_cast<void>(run_ranks({size}, [](Communicator&) {})), ArgumentError);
    }
}

TEST(World, ARankThatThrowsReleasesTheOthersFromEveryCollective) {
    for (const auto& [name, collective] : every_collective()) {
        for (std::uint64_t seed = 0; seed < 5; ++seed) {
            const auto results = run_ranks({3, seed}, [&](Communicator& world) {
                world.barrier();
                if (world.rank() == 1) {
                    throw StorageError("disk full");
                }
                collective(world);
            });
            EXPECT_EQ(results[1].end, RankResult::End::threw);
            EXPECT_THROW(rethrow_first(results), StorageError);
            for (const int survivor : {0, 2}) {
                const auto fields =
                    fields_of<RankLost>(results[static_cast<std::size_t>(survivor)]);
                EXPECT_THAT(fields, Contains(ErrorField{"rank", "rank 1"}));
                EXPECT_THAT(fields, Contains(ErrorField{"end", "threw"}));
                EXPECT_THAT(fields, Contains(ErrorField{"reason", "disk full"}));
                EXPECT_THAT(fields, Contains(ErrorField{"operation", name}));
                EXPECT_THAT(fields, Contains(ErrorField{"sequence", "2"}));
            }
        }
    }
}

TEST(World, ARankThatReturnsEarlyIsNamedByThoseThatWait) {
    for (std::uint64_t seed = 0; seed < 5; ++seed) {
        const auto results = run_ranks({2, seed}, [&](Communicator& world) {
            if (world.rank() == 0) {
                world.barrier();
            }
        });
        EXPECT_EQ(results[1].end, RankResult::End::finished);
        const auto fields = fields_of<RankLost>(results[0]);
        EXPECT_THAT(fields, Contains(ErrorField{"rank", "rank 1"}));
        EXPECT_THAT(fields, Contains(ErrorField{"end", "returned"}));
        EXPECT_THROW(rethrow_first(results), RankLost);
    }
}

TEST(World, DifferentCollectivesAreRefusedOnEveryRankBeforeDataMoves) {
    const auto collectives = every_collective();
    for (const auto& [first_name, first] : collectives) {
        for (const auto& [second_name, second] : collectives) {
            if (first_name == second_name) {
                continue;
            }
            const auto& mine = first;
            const auto& theirs = second;
            const auto results = run_ranks(
                {3}, [&](Communicator& world) { world.rank() == 2 ? theirs(world) : mine(world); });
            for (const RankResult& result : results) {
                const auto fields = fields_of<CollectiveMismatch>(result);
                EXPECT_THAT(fields, Contains(ErrorField{"operation", first_name}));
                EXPECT_THAT(fields, Contains(ErrorField{"operation", second_name}));
            }
        }
    }
}

TEST(World, DifferentCountsTypesAndRootsAreRefusedOnEveryRank) {
    const std::vector<Collective> disagreeing{
        [](Communicator& world) {
            std::string data(static_cast<std::size_t>(world.rank()), 'x');
            world.broadcast(writable_bytes(data), 0);
        },
        [](Communicator& world) { static_cast<void>(world.gather({}, world.rank())); },
        [](Communicator& world) {
            double real = 0;
            std::int64_t whole = 0;
            world.rank() == 0 ? world.all_reduce(std::span(&real, 1), ReduceOp::sum)
                              : world.all_reduce(std::span(&whole, 1), ReduceOp::sum);
        },
    };
    for (const Collective& collective : disagreeing) {
        const auto results = run_ranks({2}, collective);
        EXPECT_THROW(std::rethrow_exception(results[0].error), CollectiveMismatch);
        EXPECT_THROW(std::rethrow_exception(results[1].error), CollectiveMismatch);
    }
}

TEST(World, ARootOutsideTheWorldIsRefusedOnEveryRank) {
    for (const RankResult& result :
         run_ranks({2}, [](Communicator& world) { static_cast<void>(world.gather({}, 2)); })) {
        EXPECT_THROW(std::rethrow_exception(result.error), ArgumentError);
    }
}

TEST(World, ABrokenCommunicatorStaysBroken) {
    const auto results = run_ranks({2}, [](Communicator& world) {
        if (world.rank() == 1) {
            return;
        }
        EXPECT_THROW(world.barrier(), RankLost);
        world.barrier();
    });
    EXPECT_THROW(std::rethrow_exception(results[0].error), RankLost);
}

TEST(World, TheSeedDecidesWhoRunsFirst) {
    const auto order_of = [](std::uint64_t seed) {
        std::string order;
        rethrow_first(run_ranks({4, seed}, [&](Communicator& world) {
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
    rethrow_first(run_ranks({3}, [](Communicator& world) {
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
    const auto results = run_ranks({2}, [](Communicator& world) {
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
    rethrow_first(run_ranks({2}, [](Communicator& outer) {
        int sum = 0;
        rethrow_first(run_ranks({3}, [&](Communicator& inner) {
            inner.barrier();
            sum += inner.rank();
        }));
        outer.barrier();
        EXPECT_EQ(sum, 3);
    }));
}

}  // namespace
}  // namespace swaplab::sim
