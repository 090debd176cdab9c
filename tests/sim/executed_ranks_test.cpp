/// Ranks that are other programs: the same promises as forked ones, and the ways not to begin.

#include "collective_programs.hpp"
#include "world/board.hpp"
#include "world/world_state.hpp"

#include "swaplab/sim/error.hpp"
#include "swaplab/sim/world.hpp"

#include <fmt/format.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <poll.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

namespace swaplab::sim {
namespace {

using ::testing::HasSubstr;

std::string exec_rank() {
    return std::filesystem::read_symlink("/proc/self/exe").parent_path() / "exec_rank";
}

WorldOptions ranks(int size) {
    return {.world = WorldKind::process,
            .size = size,
            .deadline = std::chrono::milliseconds(20'000),
            .staging_bytes = 0};
}

std::string text_of_error(const RankResult& result) {
    try {
        if (result.error) {
            std::rethrow_exception(result.error);
        }
    } catch (const std::exception& error) {
        return error.what();
    }
    return "";
}

void expect_all_lost(const std::vector<RankResult>& results, const std::string& text) {
    for (const RankResult& result : results) {
        EXPECT_THROW(std::rethrow_exception(result.error), RankLost);
        EXPECT_THAT(text_of_error(result), HasSubstr(text));
    }
    EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1) << "a process is left";
}

TEST(ExecutedRanks, KeepThePromisesOfCollectives) {
    for (std::size_t i = 0; i < collective_programs().size(); ++i) {
        SCOPED_TRACE(collective_programs()[i].claim);
        EXPECT_NO_THROW(rethrow_first(
            run_executed_ranks(ranks(3), {exec_rank(), "promise", std::to_string(i)})));
    }
}

TEST(ExecutedRanks, SeeWhatFibersSee) {
    for (const int size : {1, 2, 4}) {
        const auto fibers = run_rank_functions({.size = size}, story_of_collectives);
        const auto programs = run_executed_ranks(ranks(size), {exec_rank(), "story"});
        for (std::size_t rank = 0; rank < programs.size(); ++rank) {
            EXPECT_EQ(text_of_error(programs[rank]), "");
            EXPECT_EQ(programs[rank].value, fibers[rank].value);
        }
    }
}

TEST(ExecutedRanks, DieWithAName) {
    expect_all_lost(run_executed_ranks(ranks(3), {exec_rank(), "die"}), "rank 2 of 3 lost: killed");
}

TEST(ExecutedRanks, ThatStopOrReturnEarlyAreNamed) {
    WorldOptions hasty = ranks(3);
    hasty.deadline = std::chrono::milliseconds(2000);
    expect_all_lost(run_executed_ranks(hasty, {exec_rank(), "stop"}), "rank 2 of 3 lost: stopped");
    auto results = run_executed_ranks(ranks(3), {exec_rank(), "return"});
    EXPECT_EQ(results[2].value, "early");
    results.pop_back();
    expect_all_lost(results, "rank 2 of 3 lost: returned");
}

TEST(ExecutedRanks, ThatCallDifferentCollectivesAreAllTold) {
    for (const RankResult& result : run_executed_ranks(ranks(3), {exec_rank(), "differ"})) {
        EXPECT_THROW(std::rethrow_exception(result.error), CollectiveMismatch);
        EXPECT_THAT(text_of_error(result), HasSubstr("exec_rank.cpp:"));
    }
}

TEST(ExecutedRanks, DoNotOutliveTheirLauncher) {
    std::array<int, 2> pipe{};
    ASSERT_EQ(::pipe(pipe.data()), 0);
    const pid_t launcher = ::fork();
    ASSERT_GE(launcher, 0);
    if (launcher == 0) {
        ::close(pipe[0]);
        static_cast<void>(
            run_executed_ranks(ranks(3), {exec_rank(), "rounds", std::to_string(pipe[1])}));
        ::_exit(0);
    }
    ::close(pipe[1]);
    std::array<char, 4096> bytes{};
    for (int rank = 0; rank < 3; ++rank) {
        ASSERT_EQ(::read(pipe[0], bytes.data(), 1), 1);
    }
    ::kill(launcher, SIGKILL);
    ASSERT_EQ(::waitpid(launcher, nullptr, 0), launcher);
    // The end of the pipe shows only when no rank holds its other end any more.
    pollfd more{pipe[0], POLLIN, 0};
    ssize_t received = 1;
    for (int reads = 0; received > 0 && reads < 10'000 && ::poll(&more, 1, 10'000) == 1; ++reads) {
        received = ::read(pipe[0], bytes.data(), bytes.size());
    }
    EXPECT_EQ(received, 0) << "a rank lives";
    ::close(pipe[0]);
}

TEST(ExecutedRanks, SendTheirErrorsHome) {
    const auto results = run_executed_ranks(ranks(3), {exec_rank(), "throw"});
    EXPECT_EQ(results[2].end, RankResult::End::threw);
    EXPECT_THROW(std::rethrow_exception(results[2].error), ArgumentError);
    EXPECT_THROW(std::rethrow_exception(results[0].error), RankLost);
}

TEST(ExecutedRanks, ThatCannotBeginAreLost) {
    expect_all_lost(run_executed_ranks(ranks(2), {"no/such/program"}),
                    "cannot run no/such/program: No such file or directory");
    expect_all_lost(run_executed_ranks(ranks(2), {exec_rank(), "leave"}),
                    "lost: exited: with status 7");
}

TEST(ExecutedRanks, AreChildrenOfTheirLauncher) {
    const std::string through_a_shell = exec_rank() + " story; exit $?";
    expect_all_lost(run_executed_ranks(ranks(2), {"/bin/sh", "-c", through_a_shell}),
                    "lost: exited: with status 5");
}

TEST(ExecutedRanks, JoinOnce) {
    const auto results = run_executed_ranks(ranks(2), {exec_rank(), "join_again"});
    EXPECT_THROW(std::rethrow_exception(results[1].error), ArgumentError);
    EXPECT_THAT(text_of_error(results[1]), HasSubstr("SWAPLAB_RANK is not set"));
}

TEST(ExecutedRanks, NeedAProgramAndNoHooks) {
    EXPECT_THROW(static_cast<void>(run_executed_ranks(ranks(2), {})), ArgumentError);
    EXPECT_THROW(static_cast<void>(run_executed_ranks(ranks(0), {exec_rank()})), ArgumentError);
    WorldOptions hooked = ranks(2);
    hooked.on_phase = [](int, RankPhase) {};
    EXPECT_THROW(static_cast<void>(run_executed_ranks(hooked, {exec_rank()})), ArgumentError);
}

/// What join_world() says in this process when SWAPLAB_RANK is `ticket`.
std::string refusal(const std::string& ticket) {
    ::setenv("SWAPLAB_RANK", ticket.c_str(), 1);
    std::string text;
    try {
        join_world([](Communicator&) { return std::string(); });
    } catch (const ArgumentError& error) {
        text = error.what();
    }
    ::unsetenv("SWAPLAB_RANK");
    return text;
}

/// A file such as a launcher makes; this test's parent stands in for the launcher.
class WorldOfTwo : public ::testing::Test {
  protected:
    void SetUp() override {
        charter_.layout = {sizeof(Header), sizeof(Seat), sizeof(Slot), channels};
        charter_.ranks = 2;
        charter_.deadline_ms = 1000;
        charter_.start_max_ms = 1000;
        charter_.value_bytes = 1024;
        const WorldOptions options{.size = 2, .staging_bytes = 0, .value_bytes = 1024};
        bytes_ = BoardLayout(WorldState::board_size(options)).bytes;
        ASSERT_EQ(::ftruncate(file_, static_cast<off_t>(bytes_)), 0);
    }
    void TearDown() override { ::close(file_); }

    std::string refusal_of(int rank) {
        EXPECT_EQ(::pwrite(file_, &charter_, sizeof(charter_), 0), ssize_t{sizeof(charter_)});
        return refusal(fmt::format("{} {} {}", file_, rank, ::getppid()));
    }

    Charter charter_;
    std::uint64_t bytes_ = 0;
    int file_ = ::memfd_create("world", MFD_CLOEXEC);
};

TEST_F(WorldOfTwo, HasNoOtherRanks) {
    EXPECT_THAT(refusal_of(2), HasSubstr("there is no rank 2 in a world of 2"));
    EXPECT_THAT(refusal_of(-1), HasSubstr("there is no rank -1"));
}

TEST_F(WorldOfTwo, HasOneSeatForEachRank) {
    const Board board({2, 0, 1025}, file_);
    board.seat(1).present.store(true);
    EXPECT_THAT(refusal_of(1), HasSubstr("rank 1 is there already"));
    board.seat(0).end.store(End::killed);
    EXPECT_THAT(refusal_of(0), HasSubstr("rank 0 is there already"));
}

TEST_F(WorldOfTwo, MustBeWholeAndOfTheSameSources) {
    charter_.layout[1] += 8;
    EXPECT_THAT(refusal_of(0), HasSubstr("built from other sources"));
    charter_.layout[1] -= 8;
    charter_.ranks = 1000;
    EXPECT_THAT(refusal_of(0), HasSubstr("a world of 1000 ranks"));
    charter_.ranks = 2;
    ASSERT_EQ(::ftruncate(file_, static_cast<off_t>(bytes_ - 1)), 0);
    EXPECT_THAT(refusal_of(0), HasSubstr("its file is cut short"));
    charter_.mark = 1;
    EXPECT_THAT(refusal_of(0), HasSubstr("is no world"));
}

TEST(JoinWorld, RefusesWhatIsNoTicket) {
    EXPECT_THROW(join_world([](Communicator&) { return std::string(); }), ArgumentError);
    for (const char* text : {"", "3", "3 0", "3 0 1 2", "a b c", "99999999999 0 1"}) {
        EXPECT_THAT(refusal(text), HasSubstr(fmt::format("SWAPLAB_RANK is \"{}\"", text)));
    }
    EXPECT_THAT(refusal(fmt::format("1000 0 {}", ::getppid())),
                HasSubstr("file descriptor 1000 is no world"));
    EXPECT_THAT(refusal(fmt::format("0 0 {}", ::getpid())),
                HasSubstr("its parent is not the launcher"));
}

}  // namespace
}  // namespace swaplab::sim
