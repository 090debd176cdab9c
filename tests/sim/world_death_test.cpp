/// Processes that are killed, stopped, hang or leave: the others get away, with a name.

#include "swaplab/sim/error.hpp"
#include "swaplab/sim/world.hpp"

#include <array>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <future>
#include <poll.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace swaplab::sim {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

WorldOptions processes(int ranks, int deadline_ms = 20'000) {
    return {.world = WorldKind::process,
            .size = ranks,
            .deadline = std::chrono::milliseconds(deadline_ms),
            .staging_bytes = 0};  // blocks of 4 KiB
}

void one_round(Communicator& world) {
    const Bytes mine(static_cast<std::size_t>(5000 + 3000 * world.rank()));
    static_cast<void>(world.all_gather(mine));
    world.barrier();
    std::int64_t sum = 1;
    world.all_reduce(std::span(&sum, 1), ReduceOp::sum);
}

ErrorFields fields_of_loss(const RankResult& result) {
    try {
        if (result.error) {
            std::rethrow_exception(result.error);
        }
    } catch (const RankLost& error) {
        return error.fields();
    } catch (const std::exception& error) {
        ADD_FAILURE() << "another error: " << error.what();
    }
    ADD_FAILURE() << "no RankLost";
    return {};
}

void expect_nothing_left() {
    EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1) << "a process is left";
    EXPECT_NO_THROW(rethrow_first(run_ranks(processes(2), one_round))) << "the next run";
}

/// Runs a world that never ends by itself and lets `fault` befall `victim` at the nth time that it
/// passes `phase`.
std::vector<RankResult> run_with_fault(WorldOptions options, int victim, RankPhase phase, int nth,
                                       const std::function<void()>& fault) {
    int passes = 0;  // each process counts its own
    options.on_phase = [&](int rank, RankPhase at) {
        const bool is_late = (phase == RankPhase::sleeping && rank != victim) ||
                             (phase == RankPhase::waking && rank == victim);
        if (is_late && at == RankPhase::called) {
            ::usleep(2000);  // so that others sleep, or this one has whom to wake
        }
        if (rank == victim && at == phase && ++passes == nth) {
            fault();
        }
    };
    return run_ranks(options, [&](Communicator& world) {
        for (int round = 0; round < 3 || world.rank() != victim || phase < RankPhase::returned;
             ++round) {
            one_round(world);
        }
    });
}

class KilledAt : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Phases, KilledAt, ::testing::Range(0, rank_phases), [](const auto& one) {
    return std::string(name_of(static_cast<RankPhase>(one.param)));
});

TEST_P(KilledAt, SurvivorsAreToldWhoDiedAndWhere) {
#if defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "ThreadSanitizer has a thread of its own: no process world";
#endif
    const auto phase = static_cast<RankPhase>(GetParam());
    const bool often = phase > RankPhase::started && phase < RankPhase::returned;
    const bool rare = phase == RankPhase::sleeping || phase == RankPhase::waking;
    const int nth = often && !rare ? 3 : 1;
    for (const int ranks : {2, 4, 8}) {
        for (int victim = 0; victim < ranks; ++victim) {
            const auto results =
                run_with_fault(processes(ranks), victim, phase, nth, [] { ::raise(SIGKILL); });
            for (int rank = 0; rank < ranks; ++rank) {
                const RankResult& result = results[static_cast<std::size_t>(rank)];
                EXPECT_EQ(result.end,
                          rank == victim ? RankResult::End::killed : RankResult::End::threw);
                const ErrorFields fields = fields_of_loss(result);
                EXPECT_THAT(fields, Contains(ErrorField{"rank", "rank " + std::to_string(victim)}));
                EXPECT_THAT(fields, Contains(ErrorField{
                                        "end", phase == RankPhase::ended ? "returned" : "killed"}));
                EXPECT_THAT(fields,
                            Contains(ErrorField{"last_phase", std::string(name_of(phase))}));
                if (often) {
                    EXPECT_THAT(fields, Contains(::testing::Field(&ErrorField::value,
                                                                  HasSubstr("death_test.cpp:"))));
                }
            }
        }
    }
    expect_nothing_left();
}

#if !defined(__SANITIZE_THREAD__)

std::size_t shared_memory_objects() {
    std::error_code none;
    const std::filesystem::directory_iterator objects("/dev/shm", none);
    return static_cast<std::size_t>(std::distance(objects, std::filesystem::directory_iterator()));
}

TEST(Death, ACrashSaysTheSignalAndWhereTheRankWas) {
    const auto results =
        run_with_fault(processes(3), 1, RankPhase::taking, 2, [] { ::raise(SIGTERM); });
    EXPECT_THROW(rethrow_first(results), RankLost);
    try {
        std::rethrow_exception(results[1].error);
    } catch (const std::exception& error) {
        EXPECT_THAT(error.what(), HasSubstr("rank 1 of 3 lost: killed: by signal 15"));
        EXPECT_THAT(error.what(),
                    HasSubstr("last seen taking, collective 1 of its own: all_gather"));
    }
    expect_nothing_left();
}

TEST(Death, AProcessThatLeavesEarlyIsNamedWithItsStatus) {
    for (const int ranks : {2, 4, 8}) {
        for (int victim = 0; victim < ranks; ++victim) {
            const auto results =
                run_with_fault(processes(ranks), victim, RankPhase::called, 4, [] { ::_exit(7); });
            for (const RankResult& result : results) {
                const ErrorFields fields = fields_of_loss(result);
                EXPECT_THAT(fields, Contains(ErrorField{"rank", "rank " + std::to_string(victim)}));
                EXPECT_THAT(fields, Contains(ErrorField{"end", "exited"}));
                EXPECT_THAT(fields, Contains(ErrorField{"reason", "with status 7"}));
            }
        }
    }
    expect_nothing_left();
}

TEST(Death, AStoppedProcessIsGivenUpAtTheDeadline) {
    for (const int ranks : {2, 4, 8}) {
        for (int victim = 0; victim < ranks; ++victim) {
            const auto results = run_with_fault(processes(ranks, 800), victim, RankPhase::waiting,
                                                3, [] { ::raise(SIGSTOP); });
            EXPECT_EQ(results[static_cast<std::size_t>(victim)].end, RankResult::End::killed);
            for (const RankResult& result : results) {
                const ErrorFields fields = fields_of_loss(result);
                EXPECT_THAT(fields, Contains(ErrorField{"rank", "rank " + std::to_string(victim)}));
                EXPECT_THAT(fields, Contains(ErrorField{"end", "stopped"}));
            }
        }
    }
    expect_nothing_left();
}

TEST(Death, AProcessThatNeverComesIsNamedAtTheDeadlineAndEnded) {
    const auto results = run_ranks(processes(3, 200), [](Communicator& world) {
        world.barrier();
        if (world.rank() == 1) {
            ::pause();
        }
        world.barrier();
    });
    EXPECT_EQ(results[1].end, RankResult::End::killed);
    for (const std::size_t survivor : {0U, 2U}) {
        try {
            std::rethrow_exception(results[survivor].error);
        } catch (const DeadlineExceeded& error) {
            EXPECT_THAT(error.fields(), Contains(ErrorField{"rank", "rank 1"}));
            EXPECT_THAT(error.fields(), Contains(ErrorField{"last_operation", "barrier"}));
        }
    }
    expect_nothing_left();
}

TEST(Death, NothingOutlivesAKilledLauncher) {
    const std::size_t objects = shared_memory_objects();
    std::array<int, 2> pipe{};
    ASSERT_EQ(::pipe(pipe.data()), 0);
    const pid_t launcher = ::fork();
    ASSERT_GE(launcher, 0);
    if (launcher == 0) {
        static_cast<void>(run_ranks(processes(4), [&](Communicator& world) {
            while (true) {
                one_round(world);
                static_cast<void>(!::write(pipe[1], "r", 1));  // ends it when nobody reads
            }
        }));
        ::_exit(0);
    }
    ::close(pipe[1]);
    char byte = 0;
    for (int rank = 0; rank < 4; ++rank) {
        ASSERT_EQ(::read(pipe[0], &byte, 1), 1);
    }
    ::kill(launcher, SIGKILL);
    ASSERT_EQ(::waitpid(launcher, nullptr, 0), launcher);
    // The end of the pipe shows only when no rank holds its other end any more.
    pollfd more{pipe[0], POLLIN, 0};
    std::array<char, 1 << 16> bytes{};
    ssize_t received = 1;
    for (int reads = 0; received > 0 && reads < 1000 && ::poll(&more, 1, 10'000) == 1; ++reads) {
        received = ::read(pipe[0], bytes.data(), bytes.size());
    }
    EXPECT_EQ(received, 0) << "a rank lives";
    ::close(pipe[0]);
    EXPECT_EQ(shared_memory_objects(), objects);
    expect_nothing_left();
}

TEST(Death, AProcessWorldIsRefusedWhereThreadsRun) {
    std::promise<void> done;
    std::thread other([&] { done.get_future().wait(); });
    EXPECT_THROW(static_cast<void>(run_ranks(processes(2), one_round)), ArgumentError);
    done.set_value();
    other.join();
}

#endif

}  // namespace
}  // namespace swaplab::sim
