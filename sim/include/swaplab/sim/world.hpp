#pragma once

/// Running one program on several ranks.

#include "swaplab/sim/communicator.hpp"

#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace swaplab::sim {

/// What a rank is. The program need not know.
enum class WorldKind : std::uint8_t {
    fiber,    ///< fibers of the calling thread, which switch only inside collectives; deterministic
    thread,   ///< a thread each
    process,  ///< a forked process each, which may be killed without taking the others along
};

/// "fiber", "thread", "process".
[[nodiscard]] std::string_view name_of(WorldKind kind) noexcept;

/// Where a rank is on its way, in the order of the way.
enum class RankPhase : std::uint8_t {
    started,       ///< before its program
    called,        ///< in a collective, before anything is shown
    draining,      ///< before its outbox is free
    staging,       ///< before it copies a block in
    half_staged,   ///< half-way
    staged,        ///< after it
    shown,         ///< others can see the block
    waking,        ///< before it wakes one who sleeps
    awake,         ///< has woken all
    waiting,       ///< before it looks for others' blocks
    sleeping,      ///< before it sleeps for them
    arrived,       ///< all have shown their calls
    compared,      ///< the calls agree
    taking,        ///< before it copies a block out
    taken,         ///< after it
    acknowledged,  ///< its giver knows
    next_block,    ///< all have shown a later block
    done,          ///< before the collective returns
    returned,      ///< after its program
    reported,      ///< a process has written its result
    ended,         ///< others can see that it ended
};
constexpr int rank_phases = static_cast<int>(RankPhase::ended) + 1;

[[nodiscard]] std::string_view name_of(RankPhase phase) noexcept;

struct WorldOptions {
    WorldKind world = WorldKind::fiber;
    int size = 1;            ///< 1 to 64
    std::uint64_t seed = 1;  ///< order in which fibers run between collectives
    /// How long a rank waits for another one (threads, processes), and a stopped process half as
    /// long, before it is given up. Counts from when the programs of all ranks have begun, or had
    /// `start_max` to begin. Fibers are given up when nobody can go on.
    std::chrono::milliseconds deadline{60'000};
    std::chrono::milliseconds start_max{60'000};
    /// Memory through which collectives move data, of all ranks together. Any amount of data goes
    /// through it, block by block.
    std::uint64_t staging_bytes = std::uint64_t{48} << 20U;
    /// Limit of what a rank can give back: its value, or the text and fields of its error.
    std::uint64_t value_bytes = std::uint64_t{64} << 10U;
    /// Called by each rank at each point of its way; what a fault does, it does here.
    std::function<void(int rank, RankPhase)> on_phase = {};
};

using RankProgram = std::function<void(Communicator&)>;
/// Returns what the rank gives back: of a process nothing else comes back, its changes of variables
/// end with it.
using RankFunction = std::function<std::string(Communicator&)>;

/// How one rank ended.
struct RankResult {
    enum class End : std::uint8_t {
        finished,
        threw,
        trapped,  ///< it touched device memory from the host, its stack was abandoned
        /// by kill_rank() or stop_rank(), or its process ended without a word: by a signal, by
        /// leaving the program
        killed,
    };
    End end = End::finished;
    /// What it threw; a DeviceError about the touch; a RankLost that says where it was. What a
    /// process threw comes back as the same kind with the same text and fields, without what
    /// classes derived from these carry besides.
    std::exception_ptr error;
    std::string value;
};

/// Runs `program` once per rank and returns when all have ended. A rank that throws, ends early or
/// dies breaks the collectives that others wait in: they get RankLost, never a hang.
/// Processes: call it from a single-threaded process. They end with it, and leave by _exit with
/// status 0 (finished), 10 (threw) or 11 (trapped), without running destructors of globals.
/// Throws ArgumentError for options out of range, StorageError where memory cannot be mapped,
/// std::system_error where threads or processes cannot be started.
[[nodiscard]] std::vector<RankResult> run_ranks(const WorldOptions& options,
                                                const RankProgram& program);
/// The same for programs that give something back.
[[nodiscard]] std::vector<RankResult> run_rank_functions(const WorldOptions& options,
                                                         const RankFunction& program);

/// The same over programs that need not know each other: each rank is the program command[0] (a
/// path), begun by exec with the words of `command`, which then calls join_world() as this process'
/// child, without a shell between them. For what a fork cannot copy, such as CUDA. It gives back
/// what its program of join_world() does; a program that cannot be run or never joins is lost like
/// one that died. `world` and `seed` mean nothing here. Throws as run_ranks() does, and
/// ArgumentError for an empty command and for on_phase.
[[nodiscard]] std::vector<RankResult> run_executed_ranks(const WorldOptions& options,
                                                         const std::vector<std::string>& command);

/// In a program begun by run_executed_ranks(): runs `program` as the rank that this process is,
/// then ends the process as a rank's process ends, without destructors of globals. Throws
/// ArgumentError, with nothing changed, in a process that was not begun so, has joined already, or
/// was built from other sources than its launcher.
[[noreturn]] void join_world(const RankFunction& program);

/// Ends the calling rank as a kill would, at once: a process by SIGKILL, a fiber or thread by
/// abandoning its stack, so that no destructor runs and what the stack owns stays. Inside a rank
/// only.
[[noreturn]] void kill_rank();

/// Stops the calling rank as SIGSTOP would: it makes no progress any more. It is given up and ends
/// as killed: a process (which really stops) or thread after half of the deadline, a fiber as soon
/// as no other rank can go on. Inside a rank only.
[[noreturn]] void stop_rank();

/// The calling rank makes no progress for `time`, while others may. Fibers need no time for it: the
/// rank goes on when no other can, of several delayed ones in the order in which their times end.
/// Inside a rank only.
void delay_rank(std::chrono::milliseconds time);

/// Rethrows the root cause: the error of the lowest rank that did not merely lose another rank.
void rethrow_first(const std::vector<RankResult>& results);

}  // namespace swaplab::sim
