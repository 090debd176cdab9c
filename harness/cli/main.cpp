// The swaplab command: the only file that sees the command line library.

#include "cli/commands.hpp"
#include "inspect/inspect.hpp"
#include "scenario/diagnostic.hpp"

#include "swaplab/sim/error.hpp"

#include <CLI/CLI.hpp>

#include <cstdlib>
#include <exception>
#include <iostream>
#include <string>
#include <unistd.h>
#include <vector>

namespace swaplab::harness::cli {
namespace {

const std::vector<std::string>& command_names() {
    static const std::vector<std::string> names{"run",     "list", "lint",  "explain",
                                                "inspect", "diff", "shard", "help"};
    return names;
}

void add_common(CLI::App& command, CommonOptions& common) {
    command.add_flag("--json", common.json, "one JSON document on stdout");
    command.add_flag("-q,--quiet", common.quiet, "closing lines only");
    command.add_flag("-v,--verbose", common.verbose, "every expectation");
    command.add_option("--color", common.color, "auto, always or never")
        ->check(CLI::IsMember({"auto", "always", "never"}));
}

void add_overrides(CLI::App& command, scenario::Overrides& overrides,
                   std::vector<std::string>& assignments) {
    command.add_option("--seed", overrides.seed, "instead of the scenarios' seeds")
        ->check(CLI::Range(0, 1'000'000'000));
    command.add_option("--world", overrides.world, "ranks, instead of world.size")
        ->check(CLI::Range(1, 64));
    command.add_option("--set", assignments, "PATH=VALUE: replaces a value or an axis");
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
            return ExitCode::environment;
        case sim::ErrorKind::argument:
            return ExitCode::usage;
        case sim::ErrorKind::deadline:
            return ExitCode::hang;
        default:
            return ExitCode::failed;
    }
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
    }

    ExitCode run(int argc, char** argv) {
        try {
            app_.parse(argc, argv);
        } catch (const CLI::CallForHelp&) {
            std::cout << app_.get_subcommands().front()->help();
            return ExitCode::ok;
        } catch (const CLI::ParseError& error) {
            std::cerr << "error: " << error.what() << "\n  do  swaplab --help\n";
            return ExitCode::usage;
        }
        read_assignments(assignments_, run_.overrides);
        lint_.overrides = run_.overrides;
        const std::string name = app_.get_subcommands().front()->get_name();
        if (name == "run") {
            run_.color = wants_color(run_.common.color);
            run_.live = ::isatty(STDERR_FILENO) == 1 && !run_.common.quiet;
            return run_command(run_, std::cout, std::cerr);
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
            return shard_command(shard_, std::cout);
        }
        const auto storage = make_posix_storage();
        if (name == "inspect") {
            return inspect_command(*storage, inspect_, std::cout);
        }
        return diff_command(*storage, diff_, std::cout);
    }

    void declare_run() {
        CLI::App& command = *app_.add_subcommand("run", "runs scenarios");
        command.add_option("paths", run_.paths, "files, directories, or 'family/name[case]'")
            ->required();
        add_overrides(command, run_.overrides, assignments_);
        command.add_flag("--invert", run_.invert,
                         "every expectation against its opposite: all must turn red");
        command.add_option("--junit", run_.junit, "JUnit XML to this file, too");
        add_common(command, run_.common);
    }

    void declare_list() {
        CLI::App& command = *app_.add_subcommand("list", "what scenarios there are; runs nothing");
        command.add_option("paths", list_.paths, "files, directories; default scenarios/");
        command.add_flag("--words", list_.words,
                         "the words of scenario files, those that begin with PATH");
        command.add_flag("--defects", list_.defects, "the faults that specimens have");
        add_common(command, list_.common);
    }

    void declare_lint() {
        CLI::App& command = *app_.add_subcommand("lint", "checks scenario files; runs nothing");
        command.add_option("paths", lint_.paths, "files, directories")->required();
        add_overrides(command, run_.overrides, assignments_);
        add_common(command, lint_.common);
    }

    void declare_explain() {
        CLI::App& command =
            *app_.add_subcommand("explain", "tells what scenarios would do; runs nothing");
        command.add_option("paths", lint_.paths, "files, directories")->required();
        add_overrides(command, run_.overrides, assignments_);
        add_common(command, lint_.common);
    }

    void declare_inspect() {
        CLI::App& command =
            *app_.add_subcommand("inspect", "is anything lost or broken in a DCP directory?");
        command.add_option("directory", inspect_.directory, "of a checkpoint")->required();
        command.add_option(
            "--against", inspect_.against,
            "where shapes of parameters are: a DCP directory, or JSON {name: [dims]}");
        command.add_flag("--digest", inspect_.digest, "SHA-256 of every tensor: reads payload");
        command.add_flag("--all", inspect_.all, "every row, not the first 8");
        command.add_flag("--json", inspect_.json, "one JSON document on stdout");
    }

    void declare_diff() {
        CLI::App& command = *app_.add_subcommand("diff",
                                                 "first differing element of every tensor of two "
                                                 "checkpoints");
        command.add_option("a", diff_.a, "directory")->required();
        command.add_option("b", diff_.b, "directory")->required();
        command.add_flag("--all", diff_.all, "every row, not the first 8");
        command.add_flag("--json", diff_.json, "one JSON document on stdout");
    }

    void declare_shard() {
        CLI::App& command = *app_.add_subcommand("shard", "who holds which part of a tensor");
        command.add_option("--shape", shard_.shape, "global, \"5,3\"")->required();
        command.add_option("--mesh", shard_.mesh, "\"2x2\"")->required();
        command.add_option("--placements", shard_.placements, "one per mesh axis, \"S0,R\"")
            ->required();
        command.add_flag("--json", shard_.json, "one JSON document on stdout");
    }

    CLI::App app_;
    RunOptions run_;
    ListOptions list_;
    LintOptions lint_;
    InspectOptions inspect_;
    DiffOptions diff_;
    ShardOptions shard_;
    std::vector<std::string> assignments_;
};

ExitCode help_command(const std::vector<std::string>& arguments) {
    if (arguments.size() > 1 && arguments[1] == "exit-codes") {
        std::cout << exit_code_help();
    } else {
        std::cout << help_text();
    }
    return ExitCode::ok;
}

ExitCode dispatch(int argc, char** argv) {
    const std::vector<std::string> arguments(argv + 1, argv + argc);
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
    if (first[0] != '-' && std::find(names.begin(), names.end(), first) == names.end()) {
        const std::string near = scenario::nearest(first, names);
        std::cerr << "error: unknown command \"" << first << "\""
                  << (near.empty() ? "" : "; nearest: " + near) << "\n  do  swaplab --help\n";
        return ExitCode::usage;
    }
    return CommandLine().run(argc, argv);
}

/// Maps what a command threw to its exit code; the text goes to stderr.
ExitCode guarded_main(int argc, char** argv) {
    try {
        const ExitCode code = dispatch(argc, argv);
        if (!std::cout.flush()) {
            std::cerr << "error: cannot write the results to standard output: check that its "
                         "file system has space\n";
            return ExitCode::environment;
        }
        return code;
    } catch (const sim::Error& error) {
        std::cerr << "error: " << error.message() << "\n";
        return exit_code_of(error);
    } catch (const std::bad_alloc&) {
        std::cerr << "error: this machine has not enough memory for what was asked\n";
        return ExitCode::environment;
    } catch (const std::exception& error) {
        std::cerr << "error: " << error.what() << "\n";
        return ExitCode::failed;
    }
}

}  // namespace
}  // namespace swaplab::harness::cli

int main(int argc, char** argv) {
    return static_cast<int>(swaplab::harness::cli::guarded_main(argc, argv));
}
