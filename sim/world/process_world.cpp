#include "world/process_world.hpp"

#include "world/error_message.hpp"
#include "world/futex_hub.hpp"
#include "world/process_rank.hpp"
#include "world/worlds.hpp"

#include "swaplab/sim/mutant.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <system_error>
#include <unistd.h>
#include <utility>

namespace swaplab::sim {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int look_around_ms = 10;

void require_one_thread() {
    const std::filesystem::path tasks = "/proc/self/task";
    std::error_code absent;
    const auto threads = std::distance(std::filesystem::directory_iterator(tasks, absent),
                                       std::filesystem::directory_iterator());
    if (threads > 1) {
        throw ArgumentError(
            fmt::format("a world of processes cannot start in a process of {} threads: fork copies "
                        "only one of them, in the middle of whatever the others do",
                        threads),
            {{"parameter", "world"},
             {"expected", "1 thread"},
             {"found", fmt::format("{} threads", threads)}});
    }
}

class Launcher {
  public:
    Launcher(const WorldOptions& options, int file)
        : hub_(FutexHub::Reach::processes, options.deadline), world_(options, hub_, file) {}

    ~Launcher() {
        for (Child& child : children_) {
            if (child.alive) {
                ::kill(child.pid, SIGKILL);
                static_cast<void>(wait_for(child));
            }
            ::close(child.handle);
        }
    }

    std::vector<RankResult> run(const BeginRank& begin) {
        require_one_thread();
        std::fflush(nullptr);  // or each rank would print what is buffered here
        const pid_t launcher = ::getpid();
        for (int rank = 0; rank < world_.size(); ++rank) {
            const pid_t pid = ::fork();
            if (pid == 0) {
                begin(world_, rank, launcher);
            }
            if (pid < 0) {
                throw std::system_error(errno, std::generic_category(),
                                        fmt::format("cannot start rank {}", rank));
            }
            children_.push_back({pid, static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))});
            if (children_.back().handle < 0) {
                throw std::system_error(errno, std::generic_category(),
                                        fmt::format("cannot watch rank {}", rank));
            }
        }
        watch();
        std::vector<RankResult> results;
        for (int rank = 0; rank < world_.size(); ++rank) {
            results.push_back(result_of(rank));
        }
        return results;
    }

  private:
    struct Child {
        pid_t pid = 0;
        int handle = -1;
        bool alive = true;
        int status = 0;  ///< as of waitpid
        std::optional<Clock::time_point> stopped_since{};
    };

    Child& child(int rank) { return children_[static_cast<std::size_t>(rank)]; }

    void watch() {
        while (true) {
            std::vector<pollfd> handles;
            for (const Child& one : children_) {
                if (one.alive) {
                    handles.push_back({one.handle, POLLIN, 0});
                }
            }
            if (handles.empty()) {
                return;
            }
            ::poll(handles.data(), handles.size(), look_around_ms);
            for (int rank = 0; rank < world_.size(); ++rank) {
                look_after(rank);
            }
        }
    }

    void look_after(int rank) {
        Child& one = child(rank);
        if (!one.alive) {
            return;
        }
        pollfd handle{one.handle, POLLIN, 0};
        if (::poll(&handle, 1, 0) == 1) {
            return reap(rank);
        }
        const Clock::time_point now = Clock::now();
        const auto deadline = world_.options().deadline;
        if (!is_stopped(one)) {
            one.stopped_since.reset();
        } else if (!one.stopped_since) {
            one.stopped_since = now;
        } else if (now - *one.stopped_since > deadline / 2) {
            give_up(rank, fmt::format("for more than {} ms", deadline.count() / 2));
        }
        if (!broken_since_ && world_.broken()) {
            broken_since_ = now;
        }
        if (one.alive && broken_since_ && now - *broken_since_ > deadline) {
            give_up(rank, fmt::format("did not leave within {} ms after the world broke",
                                      deadline.count()));
        }
    }

    [[nodiscard]] static bool is_stopped(const Child& one) {
        siginfo_t info{};
        return ::waitid(P_PID, static_cast<id_t>(one.pid), &info, WSTOPPED | WNOHANG | WNOWAIT) ==
                   0 &&
               info.si_pid == one.pid;
    }

    void give_up(int rank, const std::string& reason) {
        world_.end(rank, End::stopped, reason);
        ::kill(child(rank).pid, SIGKILL);
        reap(rank);
    }

    /// The status, or that of a clean exit where the caller's process takes no statuses.
    [[nodiscard]] static int wait_for(const Child& one) {
        int status = 0;
        while (::waitpid(one.pid, &status, 0) < 0 && errno == EINTR) {
        }
        return status;
    }

    void reap(int rank) {
        Child& one = child(rank);
        one.status = wait_for(one);
        one.alive = false;
        if (world_.board().seat(rank).end.load() == End::running &&
            !SWAPLAB_MUTANT("world.death_unseen")) {
            const int signal_number = WTERMSIG(one.status);
            WIFSIGNALED(one.status)
            ? world_.end(
                  rank, End::killed,
                  fmt::format("by signal {} ({})", signal_number, ::strsignal(signal_number)))
            : world_.end(rank, End::exited, fmt::format("with status {}", WEXITSTATUS(one.status)));
        }
    }

    RankResult result_of(int rank) {
        const int status = child(rank).status;
        const std::optional<RankResult> report = read_report(world_, rank);
        if (report && WIFEXITED(status) && WEXITSTATUS(status) == status_of(report->end)) {
            return *report;
        }
        return {RankResult::End::killed, std::make_exception_ptr(world_.lost(rank, "", {})), ""};
    }

    FutexHub hub_;
    WorldState world_;
    std::vector<Child> children_;
    std::optional<Clock::time_point> broken_since_;
};

}  // namespace

std::vector<RankResult> run_children(const WorldOptions& options, int file,
                                     const BeginRank& begin) {
    return Launcher(options, file).run(begin);
}

std::vector<RankResult> run_processes(const WorldOptions& options, const RankFunction& program) {
    return run_children(options, Board::no_file, [&](WorldState& world, int rank, pid_t launcher) {
        die_with(launcher);
        be_rank(world, rank, program);
    });
}

}  // namespace swaplab::sim
