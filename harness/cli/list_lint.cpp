#include "cli/commands.hpp"
#include "report/scenario_json.hpp"
#include "scenario/language/selection.hpp"
#include "scenario/language/vocabulary.hpp"

#include "swaplab/harness/specimen.hpp"
#include "swaplab/sim/units.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <ostream>

namespace swaplab::harness::cli {
namespace {

using scenario::ScenarioFile;

std::vector<ScenarioFile> load_all(const std::vector<std::string>& paths,
                                   const scenario::Overrides& overrides) {
    std::vector<ScenarioFile> files;
    for (const scenario::Selection& selection : scenario::select_scenarios(paths)) {
        files.push_back(scenario::load_scenario(selection.file, overrides));
    }
    return files;
}

std::string list_defects() {
    std::string out;
    for (const DefectInfo& defect : defects()) {
        out += fmt::format("{:<20} {}   ({})\n", defect.name, defect.says, defect.source);
    }
    return out;
}

}  // namespace

ExitCode list_command(const ListOptions& options, std::ostream& out) {
    if (options.words) {
        const std::string rows = scenario::list_words(options.prefix);
        const std::string none = fmt::format("no word begins with {}\n", options.prefix);
        out << (options.common.json ? report::words_json(options.prefix)
                : rows.empty()      ? none
                                    : rows);
        return rows.empty() ? ExitCode::nothing : ExitCode::ok;
    }
    if (options.defects) {
        out << (options.common.json ? report::defects_json() : list_defects());
        return ExitCode::ok;
    }
    const auto files = load_all(options.paths, {});
    const bool broken = std::any_of(files.begin(), files.end(), [](const ScenarioFile& file) {
        return file.diagnostics.has_errors();
    });
    const ExitCode code = files.empty() ? ExitCode::nothing
                          : broken      ? ExitCode::usage
                                        : ExitCode::ok;
    if (options.common.json) {
        out << report::list_json(files);
        return code;
    }
    std::size_t id_width = 0;
    std::size_t issue_width = 0;
    for (const ScenarioFile& file : files) {
        id_width = std::max(id_width, file.id.size());
        issue_width = std::max(issue_width, file.said("issue").size());
    }
    for (const ScenarioFile& file : files) {
        const std::string runs = file.diagnostics.has_errors()
                                     ? "broken: see swaplab lint"
                                     : fmt::format("{} x {}", sim::count_of(file.cases, "case"),
                                                   sim::count_of(file.cells, "cell"));
        out << fmt::format("{:<{}}   {:<{}}   {:<17}   stage 1   {}\n", file.id, id_width,
                           file.said("issue"), issue_width, runs, file.said("name"));
    }
    if (files.empty()) {
        out << fmt::format("no *.toml under {}\n", scenario::join(options.paths));
    }
    return code;
}

namespace {

void print_diagnostics(const ScenarioFile& file, bool quiet, std::ostream& out) {
    for (const scenario::Diagnostic& diagnostic : file.diagnostics.all()) {
        out << scenario::format(diagnostic, file.path, file.source);
    }
    if (quiet) {
        return;
    }
    for (const auto& [at, path] : file.unproven) {
        out << fmt::format("{}:{}:{}: note[unproven]: no case names {} in fails\n", file.path,
                           at.line, at.column, path);
    }
}

}  // namespace

ExitCode lint_command(const LintOptions& options, std::ostream& out) {
    const auto files = load_all(options.paths, options.overrides);
    std::size_t errors = 0;
    std::size_t unproven = 0;
    for (const ScenarioFile& file : files) {
        errors += file.diagnostics.error_count();
        unproven += file.unproven.size();
    }
    if (options.common.json) {
        out << report::lint_json(files);
    } else {
        for (const ScenarioFile& file : files) {
            print_diagnostics(file, options.common.quiet, out);
        }
        out << fmt::format("{}, {}, {} unproven\n", sim::count_of(files.size(), "file"),
                           sim::count_of(errors, "error"), unproven);
    }
    if (errors != 0) {
        return ExitCode::usage;
    }
    return files.empty() ? ExitCode::nothing : ExitCode::ok;
}

}  // namespace swaplab::harness::cli
