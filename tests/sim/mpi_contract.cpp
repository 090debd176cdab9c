/// The contract of collectives under mpirun: prints what holds, exit status 1 where something does
/// not. A program of its own, because mpirun starts the ranks. With the argument "kill" or "stop",
/// the last rank comes to such an end instead.

#include "collective_programs.hpp"
#include "mpi/mpi_communicator.hpp"

#include "swaplab/sim/error.hpp"

#include <chrono>
#include <csignal>
#include <cstdio>
#include <exception>
#include <mpi.h>
#include <string_view>
#include <unistd.h>

namespace {

using namespace swaplab;

constexpr std::chrono::milliseconds deadline{20'000};

template <class Expected>
void require_error(const std::function<void()>& call, const std::string& rank) {
    try {
        call();
    } catch (const Expected& error) {
        const sim::ErrorField named{"rank", rank};
        if (std::count(error.fields().begin(), error.fields().end(), named) == 0) {
            throw std::runtime_error("names another rank: " + std::string(error.what()));
        }
        return;
    }
    throw std::runtime_error("no error");
}

/// All ranks are told that they called different things, and may not go on.
void different_calls_are_refused_on_every_rank(sim::Communicator& world) {
    const auto other = world.dup();
    require_error<sim::CollectiveMismatch>(
        [&] { other->rank() == 0 ? other->barrier() : static_cast<void>(other->all_gather({})); },
        "rank 0");
    require_error<sim::RankLost>([&] { world.barrier(); }, "rank " + std::to_string(world.rank()));
}

/// One throws, another returns; the rest are told who left, wherever they wait.
void those_that_wait_for_a_rank_that_left_are_told(sim::Communicator& world) {
    const int last = world.size() - 1;
    const auto background = world.dup();
    if (world.rank() != last) {
        const sim::Bytes large(std::size_t{1} << 20U);
        require_error<sim::RankLost>([&] { static_cast<void>(background->all_gather(large)); },
                                     "rank " + std::to_string(last));
    }
}

/// A rank whose program throws would leave the others waiting: it ends them all.
void run(const sim::CollectiveProgram& program) {
    const auto world = sim::make_mpi_communicator(deadline);
    try {
        program.run(*world);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "rank %d: %.*s: %s\n", world->rank(),
                     static_cast<int>(program.claim.size()), program.claim.data(), error.what());
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    if (world->rank() == 0) {
        std::printf("holds: %.*s\n", static_cast<int>(program.claim.size()), program.claim.data());
    }
}

void run_all() {
    for (const sim::CollectiveProgram& program : sim::collective_programs()) {
        run(program);
    }
    run({"AStoryOfCollectivesIsTheSameAsInFibers", [](sim::Communicator& ranks) {
             const auto results =
                 sim::run_rank_functions({.size = ranks.size()}, sim::story_of_collectives);
             if (sim::story_of_collectives(ranks) !=
                 results[static_cast<std::size_t>(ranks.rank())].value) {
                 throw std::runtime_error("another digest");
             }
         }});
    if (sim::make_mpi_communicator(deadline)->size() > 1) {
        run({"DifferentCallsAreRefusedOnEveryRank", different_calls_are_refused_on_every_rank});
        run({"ThoseThatWaitForARankThatLeftAreTold",
             those_that_wait_for_a_rank_that_left_are_told});
    }
}

/// Never returns. Exit status 3 where the others are told.
void lose_the_last_rank_by(int signal) {
    const auto world = sim::make_mpi_communicator(std::chrono::milliseconds{1000});
    world->barrier();
    if (world->rank() == world->size() - 1) {
        ::raise(signal);
    }
    try {
        world->barrier();
    } catch (const sim::DeadlineExceeded& error) {
        std::fprintf(stderr, "told: %s\n", error.what());
        MPI_Abort(MPI_COMM_WORLD, 3);
    }
}

}  // namespace

int main(int argc, char** argv) {
    int threads = 0;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &threads);
    if (argc > 1) {
        lose_the_last_rank_by(std::string_view(argv[1]) == "kill" ? SIGKILL : SIGSTOP);
    }
    run_all();
    MPI_Finalize();
}
