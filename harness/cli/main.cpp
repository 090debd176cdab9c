// The swaplab command: the only file that sees the command line library.

#include "cli/commands.hpp"
#include "scenario/diagnostic.hpp"

#include "swaplab/sim/error.hpp"

#include <CLI/CLI.hpp>

#include <exception>
#include <iostream>
#include <string>
#include <vector>

namespace swaplab::harness::cli {
namespace {

const std::vector<std::string>& command_names() {
    static const std::vector<std::string> names{"list", "lint", "help"};
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

/// Everything that main() reads from the command line.
class CommandLine {
  public:
    CommandLine() : app_("swaplab", "swaplab") {
        app_.set_help_flag("");
        app_.require_subcommand(1);
        declare_list();
        declare_lint();
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
        read_assignments(assignments_, lint_.overrides);
        if (list_command_->parsed()) {
            if (list_.paths.empty() && !list_.words && !list_.defects) {
                list_.paths = {"scenarios"};
            }
            if (list_.words && !list_.paths.empty()) {
                list_.prefix = list_.paths.front();
            }
            return list_command(list_, std::cout);
        }
        return lint_command(lint_, std::cout);
    }

  private:
    void declare_list() {
        list_command_ = app_.add_subcommand("list", "what scenarios there are; runs nothing");
        list_command_->add_option("paths", list_.paths, "files, directories; default scenarios/");
        list_command_->add_flag("--words", list_.words,
                                "the words of scenario files, those that begin with PATH");
        list_command_->add_flag("--defects", list_.defects, "the faults that specimens have");
        add_common(*list_command_, list_.common);
    }

    void declare_lint() {
        lint_command_ = app_.add_subcommand("lint", "checks scenario files; runs nothing");
        lint_command_->add_option("paths", lint_.paths, "files, directories")->required();
        add_overrides(*lint_command_, lint_.overrides, assignments_);
        add_common(*lint_command_, lint_.common);
    }

    CLI::App app_;
    CLI::App* list_command_ = nullptr;
    CLI::App* lint_command_ = nullptr;
    ListOptions list_;
    LintOptions lint_;
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
        return dispatch(argc, argv);
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
