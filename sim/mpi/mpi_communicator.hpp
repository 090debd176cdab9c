#pragma once

/// Ranks of an MPI program as a Communicator. Built where MPI is found: link swaplab::sim_mpi.

#include "swaplab/sim/communicator.hpp"

#include <chrono>
#include <memory>

namespace swaplab::sim {

/// The ranks of MPI_COMM_WORLD, on a duplicate of it of its own. MPI_Init_thread must have been
/// called (MPI_THREAD_MULTIPLE if dup()s are used from other threads). Making it is collective, and
/// so is the end of the last of it and its dups, which must come before MPI_Finalize: a rank then
/// tells the others that it leaves, and waits for them, at most `deadline`. Data are copied once
/// more than MPI does.
///
/// Errors: CollectiveMismatch on all members of the call. RankLost when a member gave up its
/// communicator instead (it returned, or threw and unwound). DeadlineExceeded when one did not come
/// within `deadline`. All name the member. A rank that dies is MPI's affair: Open MPI's launcher
/// ends the others at once, names rank and signal and exits with another status than 0; where it is
/// told not to (--enable-recovery), the others get DeadlineExceeded. What MPI itself reports ends
/// all ranks. After RankLost or DeadlineExceeded MPI_Finalize may wait for the lost: end with
/// MPI_Abort.
[[nodiscard]] std::unique_ptr<Communicator> make_mpi_communicator(
    std::chrono::milliseconds deadline = std::chrono::milliseconds{60'000});

}  // namespace swaplab::sim
