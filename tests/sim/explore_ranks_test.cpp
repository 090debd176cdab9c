/// Programs whose ranks rely on the order in which they run: right in fifo order (0, 1, 2, and
/// after a collective 2, 0, 1, because who completes it goes on), wrong in one that a search has to
/// find.

#include "swaplab/sim/explore_ranks.hpp"

#include "swaplab/sim/agreement.hpp"
#include "swaplab/sim/error.hpp"

#include <memory>

namespace swaplab::sim {
namespace {

/// What the three ranks of a program share, as they would share a file system.
struct Shared {
    bool directory = false;
    bool old_files = true;
    bool refused = false;
    int first = -1;
    int arrived = 0;
    int written = 0;
    int turn = 0;
};

void require(bool condition) {
    if (!condition) {
        throw StorageError("what this rank relied on is not so");
    }
}

void share_value(Communicator& world, int root) {
    Bytes data(1);
    world.broadcast(data, root);
}

struct Defect {
    std::string_view name;
    void (*run)(Shared&, Communicator&);
};

/// Roots, groups, lengths and orders of collectives that hang on who came first.
const std::vector<Defect> call_defects{
    {"skips the barrier when the directory is not there",
     [](Shared& shared, Communicator& world) {
         if (world.rank() == 0) {
             shared.directory = true;
         } else if (!shared.directory) {
             return;
         }
         world.barrier();
     }},
    {"takes who comes first for the root",
     [](Shared& shared, Communicator& world) {
         const int root = shared.first < 0 ? world.rank() : 0;
         shared.first = root;
         share_value(world, root);
     }},
    {"takes who comes last for the root",
     [](Shared& shared, Communicator& world) {
         share_value(world, ++shared.arrived == world.size() ? world.rank() : 2);
     }},
    {"lets who comes first gather",
     [](Shared& shared, Communicator& world) {
         const bool leads = shared.arrived++ == 0;
         static_cast<void>(leads || world.rank() == 0 ? world.gather({}, leads ? world.rank() : 1)
                                                      : world.gather({}, 0));
     }},
    {"sends as many bytes as others have announced",
     [](Shared& shared, Communicator& world) {
         shared.written += world.rank() == 0 ? 1 : 0;
         Bytes data(static_cast<std::size_t>(shared.written));
         world.broadcast(data, 0);
     }},
    {"reduces in the type that others have announced",
     [](Shared& shared, Communicator& world) {
         shared.directory = shared.directory || world.rank() == 0;
         double real = 0;
         std::int64_t whole = 0;
         shared.directory ? world.all_reduce(std::span(&real, 1), ReduceOp::sum)
                          : world.all_reduce(std::span(&whole, 1), ReduceOp::sum);
     }},
    {"makes groups of who comes first",
     [](Shared& shared, Communicator& world) {
         const auto group = world.split(shared.arrived++ < 2 ? 0 : 1);
         require(group->size() == (world.rank() < 2 ? 2 : 1));
     }},
    {"has the first who comes send",
     [](Shared& shared, Communicator& world) {
         if (shared.arrived++ == 0) {
             world.send({}, 1);
         } else if (world.rank() == 1) {
             static_cast<void>(world.receive(0));
         }
     }},
    {"chooses the order of two collectives by what others have written",
     [](Shared& shared, Communicator& world) {
         const bool barrier_first = shared.written++ % 2 == world.rank() % 2;
         barrier_first ? world.barrier() : share_value(world, 0);
         barrier_first ? share_value(world, 0) : world.barrier();
     }},
};

/// Reads of what other ranks may not have written yet.
const std::vector<Defect> data_defects{
    {"writes in turns that nobody gives",
     [](Shared& shared, Communicator& world) {
         require(shared.turn++ == world.rank());
         world.barrier();
     }},
    {"writes in turns after a barrier",
     [](Shared& shared, Communicator& world) {
         world.barrier();
         require(shared.turn++ == (world.rank() + 1) % 3);
         world.barrier();
     }},
    {"publishes when one rank has written, not all",
     [](Shared& shared, Communicator& world) {
         world.barrier();
         ++shared.written;
         require(world.rank() != 1 || shared.written == 3);
         world.barrier();
     }},
    {"reads while another rank still removes old files",
     [](Shared& shared, Communicator& world) {
         world.barrier();
         shared.old_files = shared.old_files && world.rank() != 2;
         require(!shared.old_files);
         world.barrier();
     }},
};

/// Refusals that reach only those who look at the right time, or agreements that others do not
/// join.
const std::vector<Defect> agreement_defects{
    {"looks for refusals of others instead of agreeing, and leaves",
     [](Shared& shared, Communicator& world) {
         if (shared.refused) {
             return;
         }
         shared.refused = world.rank() == 2;
         world.barrier();
     }},
    {"does not wait for the refusal of another rank",
     [](Shared& shared, Communicator& world) {
         world.barrier();
         shared.refused = shared.refused || world.rank() == 2;
         if (!shared.refused) {
             world.barrier();
         }
     }},
    {"agrees on what others had written when it looked",
     [](Shared& shared, Communicator& world) {
         agree(world, "check", [&] {
             shared.directory = shared.directory || world.rank() == 0;
             require(shared.directory);
         });
     }},
    {"names its agreement after who came first",
     [](Shared& shared, Communicator& world) {
         shared.first = shared.first < 0 ? world.rank() : shared.first;
         agree(world, shared.first == 0 ? "load" : "load of another rank's choice", [] {});
         require(shared.first == 0);
     }},
    {"applies when it saw no refusal, two collectives later",
     [](Shared& shared, Communicator& world) {
         world.barrier();
         share_value(world, 0);
         shared.refused = shared.refused || world.rank() == 1;
         if (world.rank() == 2 && !shared.refused) {
             world.barrier();
         }
     }},
    {"agrees only where no refusal was seen yet",
     [](Shared& shared, Communicator& world) {
         if (!shared.refused) {
             shared.refused = world.rank() == 2;
             agree(world, "load", [] {});
         }
     }},
    {"takes a refusal back that others have not read yet",
     [](Shared& shared, Communicator& world) {
         shared.refused = true;
         world.barrier();
         const bool refused = shared.refused;
         shared.refused = shared.refused && world.rank() != 1;
         if (!refused) {
             agree(world, "apply", [] {});
         }
     }},
    {"refuses on its own when others have applied",
     [](Shared& shared, Communicator& world) {
         world.barrier();
         if (world.rank() == 1 && shared.written < 2) {
             throw StorageError("refuses alone");
         }
         ++shared.written;
         agree(world, "apply", [] {});
     }},
};

/// The same work, with the ranks waiting for each other where they must.
void correct(Shared& shared, Communicator& world) {
    shared.directory = shared.directory || world.rank() == 0;
    world.barrier();
    require(shared.directory);
    ++shared.written;
    agree(world, "write", [] {});
    require(shared.written == 3);
    share_value(world, 2);
}

std::function<RankProgram()> fresh(void (*run)(Shared&, Communicator&)) {
    return [run] {
        const auto shared = std::make_shared<Shared>();
        return [run, shared](Communicator& world) { run(*shared, world); };
    };
}

std::vector<Defect> all_defects() {
    std::vector<Defect> all = call_defects;
    all.insert(all.end(), data_defects.begin(), data_defects.end());
    all.insert(all.end(), agreement_defects.begin(), agreement_defects.end());
    return all;
}

TEST(ExploreRanks, FifoOrderFindsNoneOfTheseDefects) {
    EXPECT_GE(call_defects.size() + agreement_defects.size(), 15U);
    for (const Defect& defect : all_defects()) {
        EXPECT_TRUE(explore_ranks({.size = 3}, fresh(defect.run), Search::fifo, 1).failure.empty())
            << defect.name;
    }
}

TEST(ExploreRanks, EverySearchFindsEveryDefect) {
    for (const Search search : {Search::random, Search::pct, Search::exhaustive}) {
        for (const Defect& defect : all_defects()) {
            const RankExploration found =
                explore_ranks({.size = 3, .seed = 7}, fresh(defect.run), search, 2000);
            EXPECT_EQ(found.failure.size(), 3U)
                << defect.name << ", search " << static_cast<int>(search);
            EXPECT_FALSE(found.order.empty());
        }
    }
}

TEST(ExploreRanks, ACorrectProgramHoldsInEveryOrder) {
    const RankExploration all =
        explore_ranks({.size = 3}, fresh(correct), Search::exhaustive, 1'000'000);
    EXPECT_TRUE(all.complete);
    EXPECT_TRUE(all.failure.empty());
    EXPECT_GT(all.runs, 40U);
}

TEST(ExploreRanks, EveryOrderOfSmallProgramsIsSeenOnce) {
    const auto one_barrier = [](Shared&, Communicator& world) { world.barrier(); };
    // Either of two comes first; the other one goes on at once, or after it.
    const RankExploration all =
        explore_ranks({.size = 2}, fresh(one_barrier), Search::exhaustive, 1000);
    EXPECT_TRUE(all.complete);
    EXPECT_EQ(all.runs, 2U);
    EXPECT_EQ(explore_ranks({.size = 1}, fresh(one_barrier), Search::exhaustive, 9).runs, 1U);
}

TEST(ExploreRanks, RefusesAProgramThatChangesByItself) {
    int runs = 0;
    const auto make = [&runs]() -> RankProgram {
        if (++runs == 1) {
            return [](Communicator& world) { world.barrier(); };
        }
        return [](Communicator& world) {
            if (world.rank() == 0) {
                static_cast<void>(world.receive(1));
            } else if (world.rank() == 1) {
                world.send({}, 0);
            }
        };
    };
    EXPECT_THROW(static_cast<void>(explore_ranks({.size = 3}, make, Search::exhaustive, 100)),
                 DeviceError);
    EXPECT_EQ(runs, 2);
}

TEST(ExploreRanks, TheSameSeedFindsTheSameOrder) {
    for (const Search search : {Search::random, Search::pct}) {
        const auto order = [&] {
            return explore_ranks({.size = 3, .seed = 5}, fresh(data_defects[0].run), search, 2000)
                .order;
        };
        EXPECT_EQ(order(), order());
    }
}

}  // namespace
}  // namespace swaplab::sim
