#include "world/process_rank.hpp"

#include "world/error_message.hpp"
#include "world/rank_run.hpp"

#include "swaplab/sim/mutant.hpp"

#include <csignal>
#include <cstdio>
#include <cstring>
#include <span>
#include <string>
#include <sys/prctl.h>
#include <unistd.h>

namespace swaplab::sim {
namespace {

constexpr int status_threw = 10;
constexpr int status_trapped = 11;

/// What a rank leaves behind: how it ended, then its value or its error.
void write_report(WorldState& world, int rank, const RankResult& result) {
    const std::span<std::byte> report = world.board().report(rank);
    const std::string text =
        result.error ? encode_error(result.error, report.size() - 1) : result.value;
    report[0] = static_cast<std::byte>(result.end);
    std::memcpy(report.data() + 1, text.data(), text.size());
    world.board().seat(rank).report_bytes.store(1 + text.size());
}

}  // namespace

int status_of(RankResult::End end) {
    constexpr int statuses[] = {0, status_threw, status_trapped};
    return statuses[static_cast<std::size_t>(end)];
}

std::optional<RankResult> read_report(WorldState& world, int rank) {
    const std::uint64_t bytes = world.board().seat(rank).report_bytes.load();
    if (bytes == 0) {
        return std::nullopt;
    }
    const std::span<std::byte> report = world.board().report(rank);
    const std::string text(reinterpret_cast<const char*>(report.data()) + 1, bytes - 1);
    RankResult result;
    result.end = static_cast<RankResult::End>(report[0]);
    if (result.end == RankResult::End::finished) {
        result.value = text;
    } else {
        result.error = decode_error(text);
    }
    return result;
}

void die_with(pid_t launcher) noexcept {
    if (!SWAPLAB_MUTANT("world.orphans_live")) {
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    }
    if (::getppid() != launcher) {
        ::_exit(1);
    }
}

void be_rank(WorldState& world, int rank, const RankFunction& program) noexcept {
    RankRun run(world, rank, program);
    run.resume_to_end();
    if (run.wish() == RankRun::Wish::stop) {
        ::raise(SIGSTOP);
    }
    if (run.result().end == RankResult::End::killed) {
        ::raise(SIGKILL);
    }
    write_report(world, rank, run.result());
    world.at(rank, RankPhase::reported);
    run.show_end();
    world.at(rank, RankPhase::ended);
    std::fflush(nullptr);
    ::_exit(status_of(run.result().end));
}

}  // namespace swaplab::sim
