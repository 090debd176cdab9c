#pragma once

/// Ranks of an MPI program as a Communicator. Built where MPI is found: link swaplab::sim_mpi.

#include "swaplab/sim/communicator.hpp"

#include <memory>

namespace swaplab::sim {

/// The ranks of MPI_COMM_WORLD, on a duplicate of it of its own. MPI_Init_thread must have been
/// called (MPI_THREAD_MULTIPLE if dup()s are used from other threads); the communicator must go
/// before MPI_Finalize. Collective.
///
/// Errors: CollectiveMismatch on all members of the call. What MPI reports, it handles itself: by
/// default the launcher ends all ranks, so there is no RankLost. A rank that throws should end in
/// MPI_Abort.
[[nodiscard]] std::unique_ptr<Communicator> make_mpi_communicator();

}  // namespace swaplab::sim
