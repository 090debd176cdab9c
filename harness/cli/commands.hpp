#pragma once

/// What the commands about scenarios do; main.cpp reads the command line for them.

#include "scenario/language/scenario_file.hpp"

#include "swaplab/harness/exit_code.hpp"

#include <iosfwd>
#include <string>
#include <vector>

namespace swaplab::harness::cli {

/// Options that every command has.
struct CommonOptions {
    bool json = false;
    bool quiet = false;
    bool verbose = false;
    std::string color = "auto";  ///< auto, always, never
};

struct ListOptions {
    CommonOptions common;
    std::vector<std::string> paths;
    bool words = false;
    std::string prefix;
    bool defects = false;
};

struct LintOptions {
    CommonOptions common;
    std::vector<std::string> paths;
    scenario::Overrides overrides;
};

struct RunOptions {
    CommonOptions common;
    std::vector<std::string> paths;
    scenario::Overrides overrides;
    bool invert = false;
    std::string device = "simulated";  ///< or "cuda"
    std::string junit;                 ///< file, or empty
    std::string trace;                 ///< directory for traces, or empty
    bool color = false;                ///< decided: common.color against the terminal
    bool live = false;                 ///< stderr is a terminal
    std::size_t columns = 80;          ///< of that terminal
};

/// Results to `out`. Errors: StorageError for paths that cannot be read.
ExitCode list_command(const ListOptions& options, std::ostream& out);
ExitCode lint_command(const LintOptions& options, std::ostream& out);
/// Tells stories in sentences; problems of files go to `err`.
ExitCode explain_command(const LintOptions& options, std::ostream& out, std::ostream& err);
/// Problems of scenario files go to `err`, with --json also to `out`, and nothing runs then. A step
/// that never ends ends the process with exit code 5, after everything so far was told.
ExitCode run_command(const RunOptions& options, std::ostream& out, std::ostream& err);

/// "0.1.0".
[[nodiscard]] std::string version_number();
/// The text of `swaplab --help` and of `swaplab --version`.
[[nodiscard]] std::string help_text();
[[nodiscard]] std::string version_text();

}  // namespace swaplab::harness::cli
