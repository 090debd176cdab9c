/// How every kind of world ends when ranks disagree, fail or leave.

#include "world_kinds.hpp"

#include "swaplab/sim/buffer.hpp"
#include "swaplab/sim/error.hpp"
#include "swaplab/sim/simulated_device.hpp"
#include "swaplab/sim/stream.hpp"

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <poll.h>
#include <stdexcept>
#include <sys/wait.h>

namespace swaplab::sim {
namespace {

using ::testing::Contains;

template <class Exception>
ErrorFields fields_of(const RankResult& result) {
    try {
        if (result.error) {
            std::rethrow_exception(result.error);
        }
    } catch (const Exception& error) {
        return error.fields();
    } catch (const std::exception& error) {
        ADD_FAILURE() << "another error: " << error.what();
        return {};
    }
    ADD_FAILURE() << "no error";
    return {};
}

using Collective = std::function<void(Communicator&)>;

std::vector<std::pair<std::string, Collective>> every_collective() {
    return {
        {"barrier", [](Communicator& world) { world.barrier(); }},
        {"broadcast",
         [](Communicator& world) {
             Bytes data(2);
             world.broadcast(data, 0);
         }},
        {"all_gather", [](Communicator& world) { static_cast<void>(world.all_gather(Bytes(1))); }},
        {"all_gather_into",
         [](Communicator& world) {
             Bytes all(static_cast<std::size_t>(world.size()));
             world.all_gather_into(Bytes(1), all);
         }},
        {"gather", [](Communicator& world) { static_cast<void>(world.gather(Bytes(1), 0)); }},
        {"scatter",
         [](Communicator& world) {
             const std::vector<Bytes> parts(
                 static_cast<std::size_t>(world.rank() == 0 ? world.size() : 0));
             static_cast<void>(world.scatter(parts, 0));
         }},
        {"all_to_all",
         [](Communicator& world) {
             static_cast<void>(
                 world.all_to_all(std::vector<Bytes>(static_cast<std::size_t>(world.size()))));
         }},
        {"all_reduce sum",
         [](Communicator& world) {
             double value = 1;
             world.all_reduce(std::span(&value, 1), ReduceOp::sum);
         }},
        {"reduce_scatter sum",
         [](Communicator& world) {
             const std::vector<double> values(static_cast<std::size_t>(world.size()));
             double mine = 0;
             world.reduce_scatter(std::span(values), std::span(&mine, 1), ReduceOp::sum);
         }},
        {"all_gather_object",
         [](Communicator& world) { static_cast<void>(world.all_gather_object("a", "test")); }},
        {"split", [](Communicator& world) { static_cast<void>(world.split(0)); }},
        {"dup", [](Communicator& world) { static_cast<void>(world.dup()); }},
    };
}

std::size_t open_descriptors() {
    return static_cast<std::size_t>(
        std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {}));
}

/// However a world ends, it leaves no process and no descriptor.
class Errors : public ::testing::TestWithParam<WorldKind> {
  protected:
    void TearDown() override {
        EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1) << "a process is left";
        if (!device_abandoned) {
            EXPECT_EQ(open_descriptors(), descriptors_before_) << "a descriptor is left";
        }
    }

    static WorldOptions options(int ranks, int deadline_ms = 60'000) {
        return {
            .world = GetParam(), .size = ranks, .deadline = std::chrono::milliseconds(deadline_ms)};
    }

    /// By a rank that ended without unwinding: what its stack owned stays.
    bool device_abandoned = false;

  private:
    std::size_t descriptors_before_ = open_descriptors();
};
INSTANTIATE_TEST_SUITE_P(Worlds, Errors, ::testing::ValuesIn(kinds),
                         [](const auto& one) { return std::string(name_of(one.param)); });

TEST_P(Errors, ARankThatThrowsReleasesTheOthersFromEveryCollective) {
    for (const auto& [name, collective] : every_collective()) {
        const Collective& call = collective;
        const auto results = run_ranks(options(3), [&](Communicator& world) {
            world.barrier();
            if (world.rank() == 1) {
                throw StorageError("disk full", {{"file", "a.bin"}});
            }
            call(world);
        });
        EXPECT_EQ(results[1].end, RankResult::End::threw);
        EXPECT_THAT(fields_of<StorageError>(results[1]), Contains(ErrorField{"file", "a.bin"}));
        EXPECT_THROW(rethrow_first(results), StorageError);
        for (const std::size_t survivor : {0U, 2U}) {
            const auto fields = fields_of<RankLost>(results[survivor]);
            EXPECT_THAT(fields, Contains(ErrorField{"rank", "rank 1"}));
            EXPECT_THAT(fields, Contains(ErrorField{"end", "threw"}));
            EXPECT_THAT(fields, Contains(ErrorField{"reason", "disk full"}));
            EXPECT_THAT(fields, Contains(ErrorField{"operation", name}));
            EXPECT_THAT(fields, Contains(ErrorField{"sequence", "2"}));
            EXPECT_THAT(fields, Contains(ErrorField{"last_operation", "barrier"}));
        }
    }
}

TEST_P(Errors, ARankThatReturnsEarlyIsNamedByThoseThatWait) {
    const auto results = run_ranks(options(3), [](Communicator& world) {
        if (world.rank() != 1) {
            world.barrier();
        }
    });
    EXPECT_EQ(results[1].end, RankResult::End::finished);
    for (const std::size_t survivor : {0U, 2U}) {
        const auto fields = fields_of<RankLost>(results[survivor]);
        EXPECT_THAT(fields, Contains(ErrorField{"rank", "rank 1"}));
        EXPECT_THAT(fields, Contains(ErrorField{"end", "returned"}));
    }
}

TEST_P(Errors, DifferentCollectivesAreRefusedOnEveryRankBeforeDataMoves) {
    const auto collectives = every_collective();
    for (std::size_t i = 0; i < collectives.size(); ++i) {
        const auto& [first_name, first] = collectives[i];
        const auto& [second_name, second] = collectives[(i + 1) % collectives.size()];
        const Collective& mine = first;
        const Collective& theirs = second;
        const auto results = run_ranks(options(3), [&](Communicator& world) {
            world.rank() == 2 ? theirs(world) : mine(world);
        });
        for (const RankResult& result : results) {
            const auto fields = fields_of<CollectiveMismatch>(result);
            EXPECT_THAT(fields, Contains(ErrorField{"operation", first_name}));
            EXPECT_THAT(fields, Contains(ErrorField{"operation", second_name}));
        }
    }
}

TEST_P(Errors, DifferentCountsTypesRootsPurposesAndSequencesAreRefusedOnEveryRank) {
    const std::vector<Collective> disagreeing{
        [](Communicator& world) {
            Bytes data(static_cast<std::size_t>(world.rank()));
            world.broadcast(data, 0);
        },
        [](Communicator& world) { static_cast<void>(world.gather({}, world.rank())); },
        [](Communicator& world) {
            double real = 0;
            std::int64_t whole = 0;
            world.rank() == 0 ? world.all_reduce(std::span(&real, 1), ReduceOp::sum)
                              : world.all_reduce(std::span(&whole, 1), ReduceOp::sum);
        },
        [](Communicator& world) {
            static_cast<void>(world.all_gather_object("", world.rank() == 0 ? "load" : "save"));
        },
        [](Communicator& world) { static_cast<void>(world.receive(1 - world.rank())); },
        [](Communicator& world) {
            const auto group = world.split(0);
            world.rank() == 0 ? world.barrier() : group->barrier();
        },
    };
    for (const Collective& collective : disagreeing) {
        for (const RankResult& result : run_ranks(options(2), collective)) {
            static_cast<void>(fields_of<CollectiveMismatch>(result));
        }
    }
}

TEST_P(Errors, RootsRanksAndSizesThatCannotBeAreRefused) {
    const std::vector<Collective> impossible{
        [](Communicator& world) { static_cast<void>(world.gather({}, 2)); },
        [](Communicator& world) { static_cast<void>(world.scatter({}, -1)); },
        [](Communicator& world) { static_cast<void>(world.receive(2)); },
        [](Communicator& world) { world.send({}, world.rank()); },
        [](Communicator& world) { static_cast<void>(world.all_to_all({})); },
        [](Communicator& world) {
            double mine = 0;
            world.reduce_scatter({}, std::span(&mine, 1), ReduceOp::sum);
        },
        [](Communicator& world) {
            const std::int64_t mesh[] = {3, 1};
            static_cast<void>(world.split_mesh(mesh, 0));
        },
        [](Communicator& world) {
            std::vector<std::unique_ptr<Communicator>> dups;
            while (true) {
                dups.push_back(world.dup());
            }
        },
    };
    for (const Collective& collective : impossible) {
        for (const RankResult& result : run_ranks(options(2), collective)) {
            static_cast<void>(fields_of<ArgumentError>(result));
        }
    }
}

TEST_P(Errors, ABrokenCommunicatorStaysBroken) {
    const auto results = run_ranks(options(2), [](Communicator& world) {
        if (world.rank() == 1) {
            return;
        }
        try {
            world.barrier();
        } catch (const RankLost&) {
            world.barrier();
        }
    });
    EXPECT_THAT(fields_of<RankLost>(results[0]), Contains(ErrorField{"sequence", "2"}));
}

TEST_P(Errors, RanksThatWaitInACircleAreGivenUp) {
    const auto results = run_ranks(options(3, 500), [](Communicator& world) {
        static_cast<void>(world.receive((world.rank() + 1) % 3));
    });
    for (const RankResult& result : results) {
        EXPECT_THAT(fields_of<DeadlineExceeded>(result),
                    Contains(ErrorField{"last_operation", "point_to_point"}));
    }
}

void begin_late(int rank, RankPhase at) {
    if (rank == 1 && at == RankPhase::started) {
        ::poll(nullptr, 0, 900);
    }
}

TEST_P(Errors, ARankThatTakesLongToBeginIsNotLate) {
    WorldOptions slow = options(2, 400);
    slow.on_phase = begin_late;
    EXPECT_NO_THROW(rethrow_first(run_ranks(slow, [](Communicator& world) { world.barrier(); })));
}

TEST_P(Errors, ARankThatTakesLongerThanStartMaxToBeginIsLate) {
    if (GetParam() == WorldKind::fiber) {
        GTEST_SKIP() << "fibers know no time";
    }
    WorldOptions slow = options(2, 200);
    slow.start_max = std::chrono::milliseconds(100);
    slow.on_phase = begin_late;
    const auto results = run_ranks(slow, [](Communicator& world) { world.barrier(); });
    EXPECT_THAT(fields_of<DeadlineExceeded>(results[0]), Contains(ErrorField{"rank", "rank 1"}));
}

TEST_P(Errors, ValuesLargerThanTheLimitAreErrorsOfTheirRank) {
    const auto results = run_rank_functions(options(2), [](Communicator& world) {
        return std::string(world.rank() == 0 ? 65'537 : 65'536, 'x');
    });
    EXPECT_THAT(fields_of<ArgumentError>(results[0]), Contains(ErrorField{"rank", "rank 0"}));
    EXPECT_EQ(results[1].value.size(), 65'536U);
}

TEST_P(Errors, ARankThatTouchesDeviceMemoryEndsAloneAndIsNamed) {
    device_abandoned = GetParam() != WorldKind::process;
    const auto results = run_ranks(options(2), [](Communicator& world) {
        const auto device = make_simulated_device({.rank = world.rank()});
        world.barrier();
        if (world.rank() == 1) {
            const Stream stream(*device, "stream");
            const DeviceBuffer memory(*device, 64, stream, "touched");
            const volatile std::byte* const address = memory.data();
            static_cast<void>(*address);
        }
        world.barrier();
    });
    EXPECT_EQ(results[1].end, RankResult::End::trapped);
    static_cast<void>(fields_of<DeviceError>(results[1]));
    EXPECT_THAT(fields_of<RankLost>(results[0]), Contains(ErrorField{"end", "trapped"}));
}

TEST_P(Errors, AKilledRankEndsWithoutUnwindingAndIsNamed) {
    const auto results = run_ranks(options(3), [](Communicator& world) {
        world.barrier();
        if (world.rank() == 1) {
            struct Unwound {
                ~Unwound() { std::abort(); }
            } const never;
            kill_rank();
        }
        world.barrier();
    });
    EXPECT_EQ(results[1].end, RankResult::End::killed);
    EXPECT_THROW(rethrow_first(results), RankLost);
    for (const RankResult& result : results) {
        const auto fields = fields_of<RankLost>(result);
        EXPECT_THAT(fields, Contains(ErrorField{"rank", "rank 1"}));
        EXPECT_THAT(fields, Contains(ErrorField{"end", "killed"}));
    }
}

TEST_P(Errors, AStoppedRankIsGivenUpAndNamed) {
    const auto results = run_ranks(options(3, 3000), [](Communicator& world) {
        world.barrier();
        if (world.rank() == 1) {
            stop_rank();
        }
        world.barrier();
    });
    EXPECT_EQ(results[1].end, RankResult::End::killed);
    for (const RankResult& result : results) {
        const auto fields = fields_of<RankLost>(result);
        EXPECT_THAT(fields, Contains(ErrorField{"rank", "rank 1"}));
        EXPECT_THAT(fields, Contains(ErrorField{"end", "stopped"}));
    }
}

TEST_P(Errors, ARankThatNobodyWaitsForMayStopWithoutHarmToOthers) {
    const auto results = run_rank_functions(options(2, 2000), [](Communicator& world) {
        if (world.rank() == 1) {
            stop_rank();
        }
        return std::string("done");
    });
    EXPECT_EQ(results[0].value, "done");
    EXPECT_EQ(results[1].end, RankResult::End::killed);
}

TEST_P(Errors, DelayedRanksAreWaitedFor) {
    const auto results = run_rank_functions(options(3), [](Communicator& world) {
        delay_rank(std::chrono::milliseconds(2 * world.rank()));
        std::int64_t sum = world.rank();
        world.all_reduce(std::span(&sum, 1), ReduceOp::sum);
        delay_rank(std::chrono::milliseconds(1));
        return std::to_string(sum);
    });
    for (const RankResult& result : results) {
        EXPECT_EQ(result.value, "3");
    }
}

TEST(FiberErrors, DelayedRanksGoOnWhenNobodyElseCanInTheOrderOfTheirDelays) {
    for (const std::uint64_t seed : {1U, 2U, 3U}) {
        std::string order;
        const auto results = run_ranks({.size = 4, .seed = seed}, [&](Communicator& world) {
            const int delays[] = {30, 10, 0, 20};
            if (delays[world.rank()] > 0) {
                delay_rank(std::chrono::milliseconds(delays[world.rank()]));
            }
            order += std::to_string(world.rank());
            world.barrier();
        });
        EXPECT_NO_THROW(rethrow_first(results));
        EXPECT_EQ(order, "2130");
    }
}

TEST_P(Errors, OutOfDeviceMemoryComesBackWithItsReport) {
    OutOfDeviceMemory::Report report;
    report.tag = "bucket";
    report.requested_bytes = 5;
    report.holders.resize(10, {"a holder", 1, 256, {}});
    report.largest_hole_bytes = 4;
    report.pending_bytes = 3;
    report.waiting_suffices = true;
    report.holders[0].count = 2;
    report.by_tag.resize(5'000, {"a tag", 1, 256, {}});  // more than fits
    const auto results =
        run_ranks(options(1), [&](Communicator&) { throw OutOfDeviceMemory(report); });
    try {
        rethrow_first(results);
        FAIL() << "no error";
    } catch (const OutOfDeviceMemory& error) {
        EXPECT_EQ(error.report().tag, "bucket");
        EXPECT_EQ(error.holders().size(), 10U);
        EXPECT_EQ(error.holders()[0].count, 2U);
        EXPECT_EQ(error.report().largest_hole_bytes, 4U);
        EXPECT_EQ(error.report().pending_bytes, 3U);
        EXPECT_TRUE(error.report().waiting_suffices);
    }
}

}  // namespace
}  // namespace swaplab::sim
