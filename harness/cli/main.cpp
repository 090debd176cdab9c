// The swaplab command: the only file that sees the command line library.

#include "cli/commands.hpp"
#include "inspect/inspect.hpp"
#include "replay/replay_command.hpp"
#include "report/scenario_json.hpp"
#include "scenario/language/diagnostic.hpp"

#include "swaplab/sim/error.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <fcntl.h>
#include <iostream>
#include <string>
#include <sys/ioctl.h>
#include <unistd.h>
#include <vector>

namespace swaplab::harness::cli {
namespace {

const std::vector<std::string>& command_names() {
    static const std::vector<std::string> names{"run",  "list",  "lint",   "explain", "inspect",
                                                "diff", "shard", "replay", "help"};
    return names;
}

void add_common(CLI::App& command, CommonOptions& common) {
    command.set_help_flag("-h,--help", "these lines");
    command.add_flag("--json", common.json, "one JSON document on stdout");
    command.add_flag("-q,--quiet", common.quiet, "closing lines only");
    command.add_flag("-v,--verbose", common.verbose, "every expectation");
    command.add_option("--color", common.color, "auto, always or never")
        ->check(CLI::IsMember({"auto", "always", "never"}));
}

/// What the command line says about the set-up, before it is read.
struct Replaced {
    std::vector<std::string> worlds;
    std::vector<std::string> assignments;
};

void add_overrides(CLI::App& command, scenario::Overrides& overrides, Replaced& replaced) {
    command.add_option("--seed", overrides.seed, "instead of the scenarios' seeds")
        ->check(CLI::Range(0, 1'000'000'000));
    command
        .add_option("--world", replaced.worlds,
                    "ranks (1 to 64) instead of world.size, or fiber, thread or process instead "
                    "of world.kind; twice for both")
        ->allow_extra_args(false);
    command.add_option("--set", replaced.assignments, "PATH=VALUE: replaces a value or an axis");
}

/// For names of files and directories.
CLI::Validator named_something() {
    return {[](const std::string& name) {
                return std::string(name.empty() ? "the name is empty" : "");
            },
            "NAME"};
}

[[noreturn]] void refuse(const std::string& what) {
    throw sim::ArgumentError(what + "\n  do  swaplab --help", {{"found", what}});
}

/// Throws ArgumentError for what is neither a number of ranks nor a kind of world, and for two of
/// one sort.
void read_worlds(const std::vector<std::string>& worlds, scenario::Overrides& overrides) {
    for (const std::string& world : worlds) {
        const bool number = !world.empty() && world.size() <= 2 &&
                            world.find_first_not_of("0123456789") == std::string::npos;
        const int ranks = number ? std::stoi(world) : 0;
        if (ranks >= 1 && ranks <= 64) {
            overrides.world = ranks;
        } else if (world == "fiber" || world == "thread" || world == "process") {
            overrides.world_kind = world;
        } else {
            refuse(
                "--world wants a number of ranks from 1 to 64, or fiber, thread or process; "
                "found " +
                world);
        }
    }
    const int said = (overrides.world ? 1 : 0) + (overrides.world_kind ? 1 : 0);
    if (said != static_cast<int>(worlds.size())) {
        refuse(
            fmt::format("--world wants one number of ranks and one kind of world at most; found {}",
                        fmt::join(worlds, " and ")));
    }
}

/// Splits PATH=VALUE. Throws ArgumentError when there is no '='.
void read_assignments(const std::vector<std::string>& assignments, scenario::Overrides& overrides) {
    for (const std::string& assignment : assignments) {
        const std::size_t equals = assignment.find('=');
        if (equals == std::string::npos || equals == 0) {
            throw sim::ArgumentError(
                "--set wants PATH=VALUE, for example --set "
                "world.size=2; found " +
                    assignment,
                {{"found", assignment}});
        }
        overrides.set.emplace_back(assignment.substr(0, equals), assignment.substr(equals + 1));
    }
}

ExitCode exit_code_of(const sim::Error& error) {
    switch (error.kind()) {
        case sim::ErrorKind::storage:
        case sim::ErrorKind::device:
        case sim::ErrorKind::out_of_memory:
            return ExitCode::environment;
        case sim::ErrorKind::argument:
            return ExitCode::usage;
        case sim::ErrorKind::deadline:
            return ExitCode::hang;
        default:
            return ExitCode::failed;
    }
}

/// Columns of the terminal that stdout or stderr is; 0 when it is none: text is not shortened then.
std::size_t columns_of(int descriptor) {
    if (::isatty(descriptor) != 1) {
        return 0;
    }
    constexpr long least = 20;
    constexpr long most = 120;
    long columns = 80;
    winsize size{};
    if (::ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
        columns = size.ws_col;
    }
    if (const char* said = std::getenv("COLUMNS")) {
        const long number = std::strtol(said, nullptr, 10);
        columns = number > 0 ? number : columns;
    }
    return static_cast<std::size_t>(std::clamp(columns, least, most));
}

bool set_in_environment(const char* name) {
    const char* value = std::getenv(name);
    return value != nullptr && *value != '\0' && std::string(value) != "0";
}

/// --color beats all; then NO_COLOR, CLICOLOR_FORCE, TERM=dumb, and whether stdout is a terminal.
bool wants_color(const std::string& color) {
    if (color != "auto") {
        return color == "always";
    }
    const char* term = std::getenv("TERM");
    const bool dumb = term != nullptr && std::string(term) == "dumb";
    if (std::getenv("NO_COLOR") != nullptr || dumb) {
        return false;
    }
    return set_in_environment("CLICOLOR_FORCE") || ::isatty(STDOUT_FILENO) == 1;
}

/// Everything that main() reads from the command line.
class CommandLine {
  public:
    CommandLine() : app_("swaplab", "swaplab") {
        app_.set_help_flag("");
        app_.require_subcommand(1);
        declare_run();
        declare_list();
        declare_lint();
        declare_explain();
        declare_inspect();
        declare_diff();
        declare_shard();
        declare_replay();
    }

    ExitCode run(int argc, char** argv) {
        try {
            app_.parse(argc, argv);
        } catch (const CLI::CallForHelp&) {
            std::cout << app_.get_subcommands().front()->help("swaplab");
            return ExitCode::ok;
        } catch (const CLI::ParseError& error) {
            refuse(error.what());
        }
        read_worlds(replaced_.worlds, run_.overrides);
        read_assignments(replaced_.assignments, run_.overrides);
        lint_.overrides = run_.overrides;
        const std::string name = app_.get_subcommands().front()->get_name();
        if (name == "run") {
            run_.color = wants_color(run_.common.color);
            run_.columns = columns_of(STDERR_FILENO);
            run_.live = run_.columns > 0 && !run_.common.quiet;
            return run_command(run_, std::cout, std::cerr);
        }
        if (name == "replay") {
            replay_.json = checkpoint_.json;
            replay_.quiet = checkpoint_.quiet;
            return replay_command(*make_posix_storage(), replay_, std::cout);
        }
        if (name == "lint") {
            return lint_command(lint_, std::cout);
        }
        if (name == "explain") {
            return explain_command(lint_, std::cout, std::cerr);
        }
        return name == "list" ? list() : checkpoint_command(name);
    }

  private:
    ExitCode list() {
        if (list_.paths.empty() && !list_.words && !list_.defects) {
            list_.paths = {"scenarios"};
        }
        if (list_.words && !list_.paths.empty()) {
            list_.prefix = list_.paths.front();
        }
        return list_command(list_, std::cout);
    }

    ExitCode checkpoint_command(const std::string& name) {
        if (name == "shard") {
            shard_.json = checkpoint_.json;
            return shard_command(shard_, std::cout);
        }
        const Look look{all_ || checkpoint_.verbose, checkpoint_.quiet,
                        wants_color(checkpoint_.color), columns_of(STDOUT_FILENO)};
        const auto storage = make_posix_storage();
        if (name == "inspect") {
            inspect_.json = checkpoint_.json;
            inspect_.look = look;
            return inspect_command(*storage, inspect_, std::cout);
        }
        diff_.json = checkpoint_.json;
        diff_.look = look;
        return diff_command(*storage, diff_, std::cout);
    }

    void declare_run() {
        CLI::App& command = *app_.add_subcommand("run", "runs scenarios");
        command.add_option("PATH", run_.paths, "files, directories, or 'family/name[case]'")
            ->required();
        add_overrides(command, run_.overrides, replaced_);
        CLI::Option* invert = command.add_flag(
            "--invert", run_.invert, "every expectation against its opposite: all must turn red");
        CLI::Option* device =
            command.add_option("--device", run_.device, "simulated (default) or cuda")
                ->check(CLI::IsMember({"simulated", "cuda"}));
        command
            .add_option("--trace", run_.trace,
                        "traces and charts of simulated devices to this directory, new or empty")
            ->check(named_something())
            ->excludes(invert)
            ->excludes(device);
        command.add_option("--junit", run_.junit, "JUnit XML to this file, too")
            ->check(named_something());
        add_common(command, run_.common);
    }

    void declare_list() {
        CLI::App& command = *app_.add_subcommand("list", "what scenarios there are; runs nothing");
        command.add_option("PATH", list_.paths, "files, directories; default scenarios/");
        command.add_flag("--words", list_.words,
                         "the words of scenario files, those that begin with PATH");
        command.add_flag("--defects", list_.defects, "the faults that specimens have");
        add_common(command, list_.common);
    }

    void declare_lint() {
        CLI::App& command = *app_.add_subcommand("lint", "checks scenario files; runs nothing");
        command.add_option("PATH", lint_.paths, "files, directories")->required();
        add_overrides(command, run_.overrides, replaced_);
        add_common(command, lint_.common);
    }

    void declare_explain() {
        CLI::App& command =
            *app_.add_subcommand("explain", "tells what scenarios would do; runs nothing");
        command.add_option("PATH", lint_.paths, "files, directories")->required();
        add_overrides(command, run_.overrides, replaced_);
        add_common(command, lint_.common);
    }

    void declare_inspect() {
        CLI::App& command =
            *app_.add_subcommand("inspect", "is anything lost or broken in a DCP directory?");
        command.add_option("DIR", inspect_.directory, "of a checkpoint")
            ->required()
            ->check(named_something());
        command
            .add_option("--against", inspect_.against,
                        "where shapes of parameters are: a DCP directory, or JSON {name: [dims]}")
            ->check(named_something());
        command.add_flag("--digest", inspect_.digest, "SHA-256 of every tensor: reads payload");
        command.add_flag("--all", all_, "every row, not the first 8");
        add_common(command, checkpoint_);
    }

    void declare_diff() {
        CLI::App& command = *app_.add_subcommand("diff",
                                                 "first differing element of every tensor of two "
                                                 "checkpoints");
        command.add_option("A", diff_.a, "directory")->required()->check(named_something());
        command.add_option("B", diff_.b, "directory")->required()->check(named_something());
        command.add_flag("--all", all_, "every row, not the first 8");
        add_common(command, checkpoint_);
    }

    void declare_shard() {
        CLI::App& command = *app_.add_subcommand("shard", "who holds which part of a tensor");
        command.add_option("--shape", shard_.shape, "global, \"5,3\"")->required();
        command.add_option("--mesh", shard_.mesh, "\"2x2\"")->required();
        command.add_option("--placements", shard_.placements, "one per mesh axis, \"S0,R\"")
            ->required();
        add_common(command, checkpoint_);
    }

    void declare_replay() {
        CLI::App& command = *app_.add_subcommand(
            "replay", "runs devices again as recorded: findings, peaks, virtual time");
        command
            .add_option("TRACE", replay_.traces,
                        "files of swaplab run --trace: of the ranks of one host")
            ->required()
            ->check(named_something());
        command
            .add_option(
                "--profile", replay_.profile,
                "how fast the device is: a100_pcie4, gh200_c2c, h200_pcie5, unit (default), "
                "or a file with '/' or '.' in its path")
            ->check(named_something());
        command
            .add_option(
                "--shrink", replay_.shrink,
                "the fewest calls of one trace that show its first finding to this new file")
            ->check(named_something());
        command
            .add_option("--chart", replay_.chart, "a chart for ui.perfetto.dev to this new file")
            ->check(named_something());
        command.footer("Example: swaplab replay t/a.process1.rank0.trace --profile h200_pcie5");
        add_common(command, checkpoint_);
    }

    CLI::App app_;
    RunOptions run_;
    ListOptions list_;
    LintOptions lint_;
    InspectOptions inspect_;
    DiffOptions diff_;
    ShardOptions shard_;
    ReplayOptions replay_;
    CommonOptions checkpoint_;  ///< of the commands about checkpoints, shards and traces
    bool all_ = false;
    Replaced replaced_;
};

ExitCode help_command(const std::vector<std::string>& arguments) {
    if (arguments.size() > 1) {
        if (arguments[1] != "exit-codes") {
            refuse("no help on \"" + arguments[1] + "\"; there is: exit-codes");
        }
        std::cout << exit_code_help();
    } else {
        std::cout << help_text();
    }
    return ExitCode::ok;
}

ExitCode dispatch(int argc, char** argv) {
    const std::vector<std::string> arguments(argv + std::min(argc, 1), argv + argc);
    if (arguments.empty()) {
        std::cout << help_text();
        return ExitCode::usage;
    }
    const std::string& first = arguments.front();
    if (first == "--help" || first == "-h") {
        return help_command({});
    }
    if (first == "--version") {
        std::cout << version_text();
        return ExitCode::ok;
    }
    if (first == "help") {
        return help_command(arguments);
    }
    const auto& names = command_names();
    const bool option = !first.empty() && first.front() == '-';
    if (option || std::find(names.begin(), names.end(), first) == names.end()) {
        const std::vector<std::string> options{"--help", "--version"};
        const std::string near = scenario::nearest(first, option ? options : names);
        refuse(std::string(option ? "unknown option \"" : "unknown command \"") + first + "\"" +
               (near.empty() ? "" : "; nearest: " + near) +
               (option ? "; options of a command come after it" : ""));
    }
    return CommandLine().run(argc, argv);
}

/// Tells people on stderr, and with --json programs on stdout, which they read whatever happens.
ExitCode fail(bool json, ExitCode code, const std::string& kind, const std::string& text,
              const sim::ErrorFields& fields) {
    std::cerr << "error: " << text << "\n";
    if (json) {
        std::cout << report::error_json(code, kind, text, fields) << std::flush;
    }
    return code;
}

/// Maps what a command threw to its exit code.
ExitCode guarded_main(int argc, char** argv) {
    const bool json = std::any_of(argv, argv + argc,
                                  [](const char* word) { return std::string(word) == "--json"; });
    try {
        const ExitCode code = dispatch(argc, argv);
        if (!std::cout.flush()) {
            std::cerr << "error: cannot write the results to standard output: check that it is "
                         "open and that its file system has space\n";
            return ExitCode::environment;
        }
        return code;
    } catch (const sim::Error& error) {
        return fail(json, exit_code_of(error), std::string(name_of(error.kind())), error.message(),
                    error.fields());
    } catch (const std::bad_alloc&) {
        return fail(json, ExitCode::environment, "",
                    "this machine has not enough memory for what was asked", {});
    } catch (const std::exception& error) {
        return fail(json, ExitCode::failed, "", error.what(), {});
    }
}

/// A closed standard stream would give its number to the next file that is opened, and results
/// would be written into that: something that cannot be written takes its place.
void occupy_standard_streams() {
    for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
        if (::fcntl(stream, F_GETFD) == -1) {
            const int taken = ::open("/dev/null", O_RDONLY);
            if (taken >= 0 && taken != stream) {
                ::close(taken);
            }
        }
    }
}

}  // namespace
}  // namespace swaplab::harness::cli

int main(int argc, char** argv) {
    swaplab::harness::cli::occupy_standard_streams();
    return static_cast<int>(swaplab::harness::cli::guarded_main(argc, argv));
}
