/// The contract of collectives under mpirun: prints what holds, exit status 1 where something does
/// not. A program of its own, because mpirun starts the ranks.

#include "collective_programs.hpp"
#include "mpi/mpi_communicator.hpp"

#include "swaplab/sim/error.hpp"

#include <cstdio>
#include <exception>
#include <mpi.h>

namespace {

using namespace swaplab;

/// Whether all ranks are told that they called different things.
void different_calls_are_refused_on_every_rank(sim::Communicator& world) {
    const auto other = world.dup();
    try {
        other->rank() == 0 ? other->barrier() : static_cast<void>(other->all_gather({}));
    } catch (const sim::CollectiveMismatch&) {
        return;
    }
    throw std::runtime_error("no mismatch");
}

/// A rank whose program throws would leave the others waiting: it ends them all.
void run(const sim::CollectiveProgram& program, sim::Communicator& world) {
    try {
        program.run(world);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "rank %d: %.*s: %s\n", world.rank(),
                     static_cast<int>(program.claim.size()), program.claim.data(), error.what());
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    world.barrier();
    if (world.rank() == 0) {
        std::printf("holds: %.*s\n", static_cast<int>(program.claim.size()), program.claim.data());
    }
}

}  // namespace

int main(int argc, char** argv) {
    int threads = 0;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &threads);
    {
        const auto world = sim::make_mpi_communicator();
        for (const sim::CollectiveProgram& program : sim::collective_programs()) {
            run(program, *world);
        }
        if (world->size() > 1) {
            run({"DifferentCallsAreRefusedOnEveryRank", different_calls_are_refused_on_every_rank},
                *world);
        }
        run({"AStoryOfCollectivesIsTheSameAsInFibers",
             [](sim::Communicator& ranks) {
                 const auto results =
                     sim::run_rank_functions({.size = ranks.size()}, sim::story_of_collectives);
                 if (sim::story_of_collectives(ranks) !=
                     results[static_cast<std::size_t>(ranks.rank())].value) {
                     throw std::runtime_error("another digest");
                 }
             }},
            *world);
    }
    MPI_Finalize();
}
