/// Ranks that are programs of their own, begun by exec: the world lies in a file without a name,
/// whose descriptor they inherit.

#include "world/futex_hub.hpp"
#include "world/process_rank.hpp"
#include "world/process_world.hpp"

#include "swaplab/sim/mutant.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>

namespace swaplab::sim {
namespace {

/// Tells a program which rank of which world it is: "file rank launcher".
constexpr const char* variable = "SWAPLAB_RANK";
constexpr int status_not_begun = 127;

constexpr std::array<std::uint64_t, 4> layout{sizeof(Header), sizeof(Seat), sizeof(Slot), channels};

/// The file of a world: in memory, without a name, gone with the last process that has it open.
class WorldFile {
  public:
    explicit WorldFile(std::uint64_t bytes)
        : handle_(::memfd_create("swaplab-world", MFD_CLOEXEC)) {
        if (handle_ < 0 || ::ftruncate(handle_, static_cast<off_t>(bytes)) != 0) {
            const std::string reason = std::strerror(errno);
            throw StorageError(
                fmt::format("cannot make a file of {} bytes in memory for a world "
                            "of programs: {}",
                            bytes, reason),
                {{"operation", "map world"}, {"bytes", std::to_string(bytes)}, {"reason", reason}});
        }
    }
    ~WorldFile() { ::close(handle_); }
    WorldFile(const WorldFile&) = delete;
    WorldFile& operator=(const WorldFile&) = delete;

    [[nodiscard]] int handle() const noexcept { return handle_; }

  private:
    int handle_;
};

ArgumentError cannot_join(const std::string& reason, ErrorFields fields = {}) {
    fields.insert(fields.begin(), {"operation", "join world"});
    return ArgumentError(fmt::format("this process cannot join a world: {}. A program joins when "
                                     "run_executed_ranks() has begun it, once",
                                     reason),
                         std::move(fields));
}

/// In the child of the launcher: becomes the program, or says why it cannot.
[[noreturn]] void execute(WorldState& world, int file, int rank, pid_t launcher,
                          const std::vector<std::string>& command) {
    die_with(launcher);
    std::vector<char*> words;
    for (const std::string& word : command) {
        words.push_back(const_cast<char*>(word.c_str()));
    }
    words.push_back(nullptr);
    ::setenv(variable, fmt::format("{} {} {}", file, rank, launcher).c_str(), 1);
    ::fcntl(file, F_SETFD, 0);
    ::execv(words[0], words.data());
    world.end(rank, End::exited,
              fmt::format("before it began: cannot run {}: {}", words[0], std::strerror(errno)));
    ::_exit(status_not_begun);
}

struct Ticket {
    int file = -1;
    int rank = -1;
    pid_t launcher = -1;
};

Ticket read_ticket() {
    const char* text = std::getenv(variable);
    if (text == nullptr) {
        throw cannot_join(fmt::format("{} is not set", variable));
    }
    Ticket ticket;
    int end = 0;
    if (std::sscanf(text, "%9d %9d %9d%n", &ticket.file, &ticket.rank, &ticket.launcher, &end) !=
            3 ||
        text[end] != '\0') {
        throw cannot_join(fmt::format("{} is \"{}\"", variable, text), {{"found", text}});
    }
    if (::getppid() != ticket.launcher && !SWAPLAB_MUTANT("world.any_parent")) {
        throw cannot_join("its parent is not the launcher (a shell between them would outlive it)",
                          {{"expected", fmt::format("parent {}", ticket.launcher)},
                           {"found", fmt::format("parent {}", ::getppid())}});
    }
    return ticket;
}

WorldOptions read_options(int file) {
    Charter charter;
    struct stat status {};
    if (::pread(file, &charter, sizeof(charter), 0) != sizeof(charter) ||
        ::fstat(file, &status) != 0 || charter.mark != Charter::expected_mark) {
        throw cannot_join(fmt::format("file descriptor {} is no world", file));
    }
    if (charter.layout != layout) {
        throw cannot_join("the launcher was built from other sources than this program");
    }
    WorldOptions options;
    options.world = WorldKind::process;
    options.size = static_cast<int>(charter.ranks);
    options.deadline = std::chrono::milliseconds(charter.deadline_ms);
    options.start_max = std::chrono::milliseconds(charter.start_max_ms);
    options.staging_bytes = charter.staging_bytes;
    options.value_bytes = charter.value_bytes;
    check_options(options);
    const std::uint64_t bytes = BoardLayout(WorldState::board_size(options)).bytes;
    if (static_cast<std::uint64_t>(status.st_size) != bytes) {
        throw cannot_join("its file is cut short",
                          {{"expected", fmt::format("{} bytes", bytes)},
                           {"found", fmt::format("{} bytes", status.st_size)}});
    }
    return options;
}

void write_charter(int file, const WorldOptions& options) {
    Charter charter;
    charter.layout = layout;
    charter.ranks = options.size;
    charter.deadline_ms = options.deadline.count();
    charter.start_max_ms = options.start_max.count();
    charter.staging_bytes = options.staging_bytes;
    charter.value_bytes = options.value_bytes;
    if (::pwrite(file, &charter, sizeof(charter), offsetof(Header, charter)) != sizeof(charter)) {
        throw std::system_error(errno, std::generic_category(), "cannot write a world's charter");
    }
}

/// A seat is for one program.
void check_seat(Board& board, int rank) {
    if (rank < 0 || rank >= board.ranks()) {
        throw cannot_join(fmt::format("there is no rank {} in a world of {}", rank, board.ranks()),
                          {{"rank", fmt::format("rank {}", rank)}});
    }
    const Seat& seat = board.seat(rank);
    if (seat.present.load() || seat.end.load() != End::running) {
        throw cannot_join(fmt::format("rank {} is there already", rank),
                          {{"rank", fmt::format("rank {}", rank)}});
    }
}

}  // namespace

std::vector<RankResult> run_executed_ranks(const WorldOptions& options,
                                           const std::vector<std::string>& command) {
    check_options(options);
    if (command.empty() || options.on_phase) {
        throw ArgumentError(command.empty() ? "ranks begun by exec need a program to run"
                                            : "on_phase cannot follow ranks into other programs",
                            {{"parameter", command.empty() ? "command" : "on_phase"}});
    }
    const WorldFile file(BoardLayout(WorldState::board_size(options)).bytes);
    write_charter(file.handle(), options);
    return run_children(options, file.handle(), [&](WorldState& world, int rank, pid_t launcher) {
        execute(world, file.handle(), rank, launcher, command);
    });
}

void join_world(const RankFunction& program) {
    const Ticket ticket = read_ticket();
    const WorldOptions options = read_options(ticket.file);
    FutexHub hub(FutexHub::Reach::processes, options.deadline);
    WorldState world(options, hub, ticket.file);
    check_seat(world.board(), ticket.rank);
    ::close(ticket.file);
    ::unsetenv(variable);
    die_with(ticket.launcher);
    be_rank(world, ticket.rank, program);
}

}  // namespace swaplab::sim
