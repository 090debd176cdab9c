#include "world/board.hpp"
#include "world/worlds.hpp"

#include "swaplab/sim/error.hpp"
#include "swaplab/sim/random.hpp"

#include <fmt/format.h>

#include <array>

namespace swaplab::sim {
namespace {

void check_range(std::string_view parameter, std::uint64_t value, std::uint64_t min,
                 std::uint64_t max) {
    if (value < min || value > max) {
        throw ArgumentError(
            fmt::format("{} of a world is {}; it can be {} to {}", parameter, value, min, max),
            {{"parameter", std::string(parameter)},
             {"expected", fmt::format("{} to {}", min, max)},
             {"found", std::to_string(value)}});
    }
}

}  // namespace

void check_options(const WorldOptions& options) {
    if (options.size < 1 || options.size > ranks_max) {
        throw ArgumentError(
            fmt::format("a world of {} ranks; it can have 1 to {}", options.size, ranks_max),
            {{"parameter", "size"},
             {"expected", fmt::format("1 to {}", ranks_max)},
             {"found", std::to_string(options.size)}});
    }
    constexpr std::uint64_t gib = std::uint64_t{1} << 30U;
    check_range("staging_bytes", options.staging_bytes, 0, 64 * gib);
    check_range("value_bytes", options.value_bytes, 1024, gib);
    if (options.deadline.count() < 1) {
        throw ArgumentError("the deadline of a world must be at least 1 ms",
                            {{"parameter", "deadline"}});
    }
}

namespace {

bool merely_lost_another(const RankResult& result) {
    if (result.end == RankResult::End::killed) {
        return false;
    }
    try {
        std::rethrow_exception(result.error);
    } catch (const RankLost&) {
        return true;
    } catch (...) {
        return false;
    }
}

}  // namespace

std::string_view name_of(WorldKind kind) noexcept {
    constexpr std::array<std::string_view, 3> names{"fiber", "thread", "process"};
    return names[static_cast<std::size_t>(kind)];
}

std::string_view name_of(RankPhase phase) noexcept {
    constexpr std::array<std::string_view, rank_phases> names{
        "started", "called",       "draining",   "staging",  "half_staged", "staged",   "shown",
        "waking",  "awake",        "waiting",    "sleeping", "arrived",     "compared", "taking",
        "taken",   "acknowledged", "next_block", "done",     "returned",    "reported", "ended"};
    return names[static_cast<std::size_t>(phase)];
}

std::vector<RankResult> run_rank_functions(const WorldOptions& options,
                                           const RankFunction& program) {
    check_options(options);
    switch (options.world) {
        case WorldKind::fiber: {
            Rng rng(options.seed);
            return run_fibers(options, program, [&](const std::vector<std::size_t>& able) {
                return rng.below(able.size());
            });
        }
        case WorldKind::thread:
            return run_threads(options, program);
        case WorldKind::process:
            return run_processes(options, program);
    }
    return {};
}

std::vector<RankResult> run_ranks(const WorldOptions& options, const RankProgram& program) {
    return run_rank_functions(options, [&](Communicator& communicator) {
        program(communicator);
        return std::string();
    });
}

void rethrow_first(const std::vector<RankResult>& results) {
    std::exception_ptr collateral;
    for (const RankResult& result : results) {
        if (!result.error) {
            continue;
        }
        if (!merely_lost_another(result)) {
            std::rethrow_exception(result.error);
        }
        if (!collateral) {
            collateral = result.error;
        }
    }
    if (collateral) {
        std::rethrow_exception(collateral);
    }
}

}  // namespace swaplab::sim
