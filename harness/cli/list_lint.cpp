#include "cli/commands.hpp"
#include "report/scenario_json.hpp"
#include "scenario/selection.hpp"
#include "scenario/vocabulary.hpp"

#include "swaplab/harness/specimen.hpp"

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

std::string plural(std::size_t count, const char* word) {
    return fmt::format("{} {}{}", count, word, count == 1 ? "" : "s");
}

}  // namespace

ExitCode list_command(const ListOptions& options, std::ostream& out) {
    if (options.words) {
        const std::string rows = scenario::list_words(options.prefix);
        out << rows;
        return rows.empty() ? ExitCode::nothing : ExitCode::ok;
    }
    if (options.defects) {
        out << list_defects();
        return ExitCode::ok;
    }
    const auto files = load_all(options.paths, {});
    if (options.common.json) {
        out << report::list_json(files);
        return files.empty() ? ExitCode::nothing : ExitCode::ok;
    }
    std::size_t id_width = 0;
    std::size_t issue_width = 0;
    for (const ScenarioFile& file : files) {
        id_width = std::max(id_width, file.id.size());
        issue_width = std::max(issue_width, file.said("issue").size());
    }
    bool broken = false;
    for (const ScenarioFile& file : files) {
        broken = broken || file.diagnostics.has_errors();
        const std::string runs =
            file.diagnostics.has_errors()
                ? "broken: see swaplab lint"
                : fmt::format("{} x {}", plural(file.cases, "case"), plural(file.cells, "cell"));
        out << fmt::format("{:<{}}   {:<{}}   {:<17}   stage 1   {}\n", file.id, id_width,
                           file.said("issue"), issue_width, runs, file.said("name"));
    }
    if (files.empty()) {
        out << fmt::format("no *.toml under {}\n", scenario::join(options.paths));
        return ExitCode::nothing;
    }
    return broken ? ExitCode::usage : ExitCode::ok;
}

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
            for (const scenario::Diagnostic& diagnostic : file.diagnostics.all()) {
                out << scenario::format(diagnostic, file.path, file.source);
            }
            for (const auto& [at, path] : file.unproven) {
                if (!options.common.quiet) {
                    out << fmt::format("{}:{}:{}: note[unproven]: no case names {} in fails\n",
                                       file.path, at.line, at.column, path);
                }
            }
        }
        out << fmt::format("{}, {}, {} unproven\n", plural(files.size(), "file"),
                           plural(errors, "error"), unproven);
    }
    if (errors != 0) {
        return ExitCode::usage;
    }
    return files.empty() ? ExitCode::nothing : ExitCode::ok;
}

}  // namespace swaplab::harness::cli
