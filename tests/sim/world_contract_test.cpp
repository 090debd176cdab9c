/// What every kind of world promises: one suite, run as fibers, threads and processes (and under
/// mpirun: mpi_contract.cpp).

#include "collective_programs.hpp"
#include "world_kinds.hpp"

#include <map>

namespace swaplab::sim {
namespace {

struct Case {
    WorldKind world;
    int ranks;
    std::uint64_t staging_bytes;
};

void PrintTo(const Case& one, std::ostream* out) {
    *out << name_of(one.world) << one.ranks << (one.staging_bytes == 0 ? "small" : "");
}

std::string name_of_case(const ::testing::TestParamInfo<Case>& info) {
    return std::string(name_of(info.param.world)) + std::to_string(info.param.ranks) +
           (info.param.staging_bytes == 0 ? "Small" : "");
}

std::vector<Case> cases() {
    std::vector<Case> all;
    for (const WorldKind kind : kinds) {
        for (const int ranks : {1, 2, 3, 4, 8}) {
            all.push_back({kind, ranks, std::uint64_t{48} << 20U});
        }
        all.push_back({kind, 3, 0});  // blocks of 4 KiB
    }
    return all;
}

class Collectives : public ::testing::TestWithParam<Case> {
  protected:
    static WorldOptions options() {
        return {.world = GetParam().world,
                .size = GetParam().ranks,
                .staging_bytes = GetParam().staging_bytes};
    }
};
INSTANTIATE_TEST_SUITE_P(Worlds, Collectives, ::testing::ValuesIn(cases()), name_of_case);

TEST_P(Collectives, KeepTheirPromises) {
    for (const CollectiveProgram& program : collective_programs()) {
        SCOPED_TRACE(program.claim);
        EXPECT_NO_THROW(rethrow_first(run_ranks(options(), program.run)));
    }
}

TEST_P(Collectives, ValuesComeBackFromEveryRank) {
    const auto results = run_rank_functions(options(), [](Communicator& world) {
        world.barrier();
        return std::string(1000, static_cast<char>('a' + world.rank()));
    });
    for (std::size_t rank = 0; rank < results.size(); ++rank) {
        EXPECT_EQ(results[rank].value, std::string(1000, static_cast<char>('a' + rank)));
    }
}

TEST(Worlds, SixtyFourRanksAreNotTooMany) {
    for (const WorldKind kind : kinds) {
        rethrow_first(run_ranks({.world = kind, .size = 64}, [](Communicator& world) {
            std::int64_t sum = world.rank();
            world.all_reduce(std::span(&sum, 1), ReduceOp::sum);
            const std::vector<Bytes> all = world.all_to_all(std::vector<Bytes>(64, Bytes(2)));
            if (sum != 63 * 32 || all[63].size() != 2) {
                throw std::runtime_error("wrong sum or parts");
            }
        }));
    }
}

TEST(Worlds, OneProgramSeesTheSameInAllKindsOfWorlds) {
    for (const int ranks : {1, 2, 3, 5}) {
        std::map<WorldKind, std::vector<std::string>> seen;
        for (const WorldKind kind : kinds) {
            const auto results =
                run_rank_functions({.world = kind, .size = ranks}, story_of_collectives);
            rethrow_first(results);
            for (const RankResult& result : results) {
                seen[kind].push_back(result.value);
            }
            EXPECT_EQ(seen[kind], seen[WorldKind::fiber]) << name_of(kind);
        }
    }
}

}  // namespace
}  // namespace swaplab::sim
