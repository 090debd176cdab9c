#include "cli/commands.hpp"
#include "cli/live_line.hpp"
#include "report/run_report.hpp"
#include "scenario/selection.hpp"

#include "swaplab/harness/storage.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <ostream>

namespace swaplab::harness::cli {
namespace {

using report::RunReport;
using scenario::Run;
using scenario::ScenarioFile;

struct Chosen {
    std::vector<ScenarioFile> files;
    std::vector<std::pair<const Run*, std::string>> runs;  ///< and how the user spelled their file
};

/// "case, cell" of "family/name[case, cell]".
std::string bracket_of(const Run& run) {
    const std::size_t at = run.name.find('[');
    return run.name.substr(at + 1, run.name.size() - at - 2);
}

bool load_files(const RunOptions& options, const std::vector<scenario::Selection>& selections,
                Chosen& chosen, std::ostream& err) {
    bool good = true;
    chosen.files.reserve(selections.size());
    for (const scenario::Selection& selection : selections) {
        chosen.files.push_back(scenario::load_scenario(selection.file, options.overrides));
        const ScenarioFile& file = chosen.files.back();
        for (const scenario::Diagnostic& diagnostic : file.diagnostics.all()) {
            if (!diagnostic.warning || options.common.verbose) {
                err << scenario::format(diagnostic, file.path, file.source);
            }
        }
        good = good && !file.diagnostics.has_errors();
    }
    return good;
}

void choose_runs(const std::vector<scenario::Selection>& selections, Chosen& chosen) {
    for (std::size_t i = 0; i < selections.size(); ++i) {
        const ScenarioFile& file = chosen.files[i];
        bool any = false;
        std::vector<std::string> names;
        for (const Run& run : file.runs) {
            names.push_back(run.name);
            if (selections[i].run.empty() || bracket_of(run) == selections[i].run) {
                chosen.runs.emplace_back(&run, selections[i].file);
                any = true;
            }
        }
        if (!any && !selections[i].run.empty()) {
            const std::string wanted = file.id + "[" + selections[i].run + "]";
            const std::string near = scenario::nearest(wanted, names);
            throw sim::ArgumentError(
                fmt::format("{} has no run [{}]{}; swaplab list {} --json names its runs",
                            file.path, selections[i].run, near.empty() ? "" : "; nearest: " + near,
                            file.path),
                {{"found", wanted}});
        }
    }
}

std::vector<std::string> again_words(const Run& run, const std::string& file,
                                     const RunOptions& options) {
    // The id is enough where the file would be found by it.
    const std::string id = run.name.substr(0, run.name.find('['));
    const bool by_id = file == id + ".toml" || file == "scenarios/" + id + ".toml";
    std::vector<std::string> words{"swaplab", "run",
                                   (by_id ? id : file) + "[" + bracket_of(run) + "]"};
    if (options.overrides.seed) {
        words.insert(words.end(), {"--seed", std::to_string(*options.overrides.seed)});
    }
    if (options.overrides.world) {
        words.insert(words.end(), {"--world", std::to_string(*options.overrides.world)});
    }
    for (const auto& [path, value] : options.overrides.set) {
        words.insert(words.end(), {"--set", fmt::format("{}={}", path, value)});
    }
    if (options.invert) {
        words.emplace_back("--invert");
    }
    return words;
}

RunReport run_one(const Run& run, const std::string& file, const RunOptions& options,
                  LiveLine& live) {
    RunReport out;
    out.name = run.name;
    out.file = run.file;
    for (const scenario::CellValue& value : run.cell) {
        out.cell.emplace_back(value.path, scenario::show_plain(value.value));
    }
    out.seed = run.start.seed;
    out.must_fail = !run.which.fails.empty();
    out.again = again_words(run, file, options);
    const auto begin = std::chrono::steady_clock::now();
    const auto on_step = [&](const std::string& label, std::int64_t timeout_ms) {
        live.step(run.name, label, timeout_ms);
    };
    out.verdict =
        options.invert ? scenario::execute_inverted(run, on_step) : scenario::execute(run, on_step);
    const std::chrono::duration<double, std::milli> spent =
        std::chrono::steady_clock::now() - begin;
    out.milliseconds = spent.count();
    return out;
}

void write_junit(const std::string& path, const std::vector<RunReport>& runs) {
    std::ofstream out(path, std::ios::binary);
    out << report::junit_xml(runs);
    out.close();
    if (!out) {
        throw StorageError(fmt::format("cannot write the JUnit report {}: check that its directory "
                                       "exists and has space",
                                       path),
                           {{"operation", "write"}, {"file", path}});
    }
}

std::string first_line(const Chosen& chosen) {
    std::uint64_t seed = chosen.runs.empty() ? 1 : chosen.runs.front().first->start.seed;
    const bool several =
        std::any_of(chosen.runs.begin(), chosen.runs.end(),
                    [&](const auto& entry) { return entry.first->start.seed != seed; });
    return fmt::format("swaplab {}   seed {}   simulated device   {} scenario{}, {} run{}\n",
                       version_number(), several ? "of each run" : std::to_string(seed),
                       chosen.files.size(), chosen.files.size() == 1 ? "" : "s", chosen.runs.size(),
                       chosen.runs.size() == 1 ? "" : "s");
}

}  // namespace

ExitCode run_command(const RunOptions& options, std::ostream& out, std::ostream& err) {
    const auto selections = scenario::select_scenarios(options.paths);
    Chosen chosen;
    if (!load_files(options, selections, chosen, err)) {
        return ExitCode::usage;
    }
    choose_runs(selections, chosen);
    const report::Look look{options.color, options.common.verbose, options.common.quiet};
    const bool text = !options.common.json;
    std::size_t width = 0;
    for (const auto& [run, file] : chosen.runs) {
        width = std::max(width, run->name.size());
    }
    if (text && chosen.runs.empty()) {
        out << fmt::format("nothing ran: no *.toml under {}\n", scenario::join(options.paths));
    } else if (text && !look.quiet) {
        out << first_line(chosen);
    }
    std::vector<RunReport> runs;
    LiveLine live(err, options.live && text, chosen.runs.size());
    for (const auto& [run, file] : chosen.runs) {
        runs.push_back(run_one(*run, file, options, live));
        live.erase();
        live.finished(runs.back().verdict.status == scenario::Status::fail);
        if (text) {
            out << report::text_of(runs.back(), look, width) << std::flush;
        }
    }
    if (!options.junit.empty()) {
        write_junit(options.junit, runs);
    }
    if (!text) {
        out << report::run_json(runs);
    } else if (!runs.empty()) {
        out << report::closing_text(runs, look, options.invert);
    } else {
        out << "0 passed, 0 failed, 0 skipped\n";
    }
    return report::total(runs).exit;
}

}  // namespace swaplab::harness::cli
