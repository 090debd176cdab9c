#include "cli/commands.hpp"
#include "cli/live_line.hpp"
#include "cli/trace_writer.hpp"
#include "lab/cuda_lab.hpp"
#include "report/run_report.hpp"
#include "report/scenario_json.hpp"
#include "scenario/judge/unseen.hpp"
#include "scenario/language/selection.hpp"
#include "scenario/play/backend.hpp"

#include "swaplab/harness/storage.hpp"
#include "swaplab/sim/units.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <optional>
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
    if (options.overrides.world_kind) {
        words.insert(words.end(), {"--world", *options.overrides.world_kind});
    }
    for (const auto& [path, value] : options.overrides.set) {
        words.insert(words.end(), {"--set", fmt::format("{}={}", path, value)});
    }
    if (options.invert) {
        words.emplace_back("--invert");
    }
    if (options.device != "simulated") {
        words.insert(words.end(), {"--device", options.device});
    }
    return words;
}

RunReport report_of(const Run& run, const std::string& file, const RunOptions& options) {
    RunReport out;
    out.name = run.name;
    out.file = run.file;
    for (const scenario::CellValue& value : run.cell) {
        out.cell.emplace_back(value.path, scenario::show_plain(value.value));
    }
    out.seed = run.start.seed;
    out.must_fail = !run.which.fails.empty();
    out.patched = out.must_fail && run.which.defects.empty();
    out.again = again_words(run, file, options);
    return out;
}

RunReport run_one(const Run& run, const std::string& file, const RunOptions& options,
                  LiveLine& live) {
    RunReport out = report_of(run, file, options);
    if (out.skipped = scenario::why_not_here(run); !out.skipped.empty()) {
        out.verdict.status = scenario::Status::skip;
        return out;
    }
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

std::string device_of(const Chosen& chosen) {
    const scenario::Backend* backend =
        chosen.runs.empty() ? nullptr : chosen.runs.front().first->backend;
    if (backend == nullptr) {
        return "simulated device";
    }
    return backend->name() +
           (backend->sees_inside() ? "" : " (findings, traces, worst peaks: not checked)");
}

std::string first_line(const Chosen& chosen) {
    std::uint64_t seed = chosen.runs.empty() ? 1 : chosen.runs.front().first->start.seed;
    const bool several =
        std::any_of(chosen.runs.begin(), chosen.runs.end(),
                    [&](const auto& entry) { return entry.first->start.seed != seed; });
    return fmt::format("swaplab {}   seed {}   {}   {}, {}\n", version_number(),
                       several ? "of each run" : std::to_string(seed), device_of(chosen),
                       sim::count_of(chosen.files.size(), "scenario"),
                       sim::count_of(chosen.runs.size(), "run"));
}

/// The runs of one command: plays them in order and tells about them.
class Runner {
  public:
    /// `traces`: null where none are kept.
    Runner(const RunOptions& options, const Chosen& chosen, TraceWriter* traces, std::ostream& out,
           std::ostream& err)
        : options_(options),
          chosen_(chosen),
          traces_(traces),
          look_{options.color, options.common.verbose, options.common.quiet},
          out_(out),
          err_(err) {
        for (const auto& [run, file] : chosen.runs) {
            width_ = std::max(width_, run->name.size());
        }
    }

    ExitCode play_all() {
        if (text() && chosen_.runs.empty()) {
            out_ << fmt::format("nothing ran: no *.toml under {}\n",
                                scenario::join(options_.paths));
        } else if (text() && !look_.quiet) {
            out_ << first_line(chosen_) << std::flush;
        }
        LiveLine live(err_, options_.live && text(), options_.columns, chosen_.runs.size(),
                      [this](const std::string& step) { end_hung(step); });
        for (const auto& [run, file] : chosen_.runs) {
            RunReport report = run_one(*run, file, options_, live);
            live.erase();
            live.finished(report.verdict.status == scenario::Status::fail);
            if (traces_ != nullptr) {
                traces_->write(*run, report.verdict.traces);
                report.verdict.traces.clear();
            }
            add(std::move(report));
        }
        return close();
    }

  private:
    [[nodiscard]] bool text() const { return !options_.common.json; }

    void add(RunReport report) {
        if (text()) {
            out_ << report::text_of(report, look_, width_) << std::flush;
        }
        runs_.push_back(std::move(report));
    }

    ExitCode close() {
        if (!options_.junit.empty()) {
            write_junit(options_.junit, runs_);
        }
        if (!text()) {
            out_ << report::run_json(runs_);
        } else if (!runs_.empty()) {
            out_ << report::closing_text(runs_, look_, options_.invert);
        } else {
            out_ << "0 passed, 0 failed, 0 skipped\n";
        }
        return report::total(runs_).exit;
    }

    /// On the watchdog's thread, while the first one is inside a step that never ends: tells what
    /// there is, and ends the process, because nothing can stop that thread.
    void end_hung(const std::string& step) {
        const std::size_t hung = runs_.size();
        for (std::size_t i = hung; i < chosen_.runs.size(); ++i) {
            const auto& [run, file] = chosen_.runs[i];
            RunReport report = report_of(*run, file, options_);
            report.verdict.status = i == hung ? scenario::Status::hang : scenario::Status::skip;
            report.verdict.headline = step + " did not end within its time limit";
            report.skipped = "not run: a step of an earlier run hangs";
            add(std::move(report));
        }
        try {
            close();
        } catch (const StorageError& error) {
            err_ << "error: " << error.what() << "\n";
        }
        out_ << std::flush;
        std::_Exit(static_cast<int>(ExitCode::hang));
    }

    const RunOptions& options_;
    const Chosen& chosen_;
    TraceWriter* traces_;
    report::Look look_;
    std::ostream& out_;
    std::ostream& err_;
    std::size_t width_ = 0;
    std::vector<RunReport> runs_;
};

}  // namespace

ExitCode run_command(const RunOptions& options, std::ostream& out, std::ostream& err) {
    const auto selections = scenario::select_scenarios(options.paths);
    Chosen chosen;
    if (!load_files(options, selections, chosen, err)) {
        if (options.common.json) {
            out << report::lint_json(chosen.files);
        }
        return ExitCode::usage;
    }
    for (ScenarioFile& file : chosen.files) {
        for (Run& run : file.runs) {
            run.traced = !options.trace.empty();
        }
    }
    std::unique_ptr<scenario::Backend> backend;
    if (options.device == "cuda") {
        backend = make_cuda_backend();
        for (ScenarioFile& file : chosen.files) {
            for (Run& run : file.runs) {
                run.backend = backend.get();
            }
        }
    }
    choose_runs(selections, chosen);
    std::optional<TraceWriter> traces;
    if (!options.trace.empty()) {
        traces.emplace(options.trace);
    }
    const ExitCode code = Runner(options, chosen, traces ? &*traces : nullptr, out, err).play_all();
    if (traces) {
        err << traces->summary() << "\n";
    }
    return code;
}

}  // namespace swaplab::harness::cli
