#include "report/explain.hpp"

#include "cli/commands.hpp"
#include "report/scenario_json.hpp"
#include "scenario/language/selection.hpp"

#include <ostream>

namespace swaplab::harness::cli {

ExitCode explain_command(const LintOptions& options, std::ostream& out, std::ostream& err) {
    ExitCode code = ExitCode::nothing;
    std::vector<scenario::ScenarioFile> files;
    for (const scenario::Selection& selection : scenario::select_scenarios(options.paths)) {
        files.push_back(scenario::load_scenario(selection.file, options.overrides));
        const scenario::ScenarioFile& file = files.back();
        for (const scenario::Diagnostic& diagnostic : file.diagnostics.all()) {
            err << scenario::format(diagnostic, file.path, file.source);
        }
        if (file.diagnostics.has_errors()) {
            code = worse(code, ExitCode::usage);
        } else if (!file.runs.empty()) {
            out << (options.common.json ? "" : report::explain(file));
            code = code == ExitCode::nothing ? ExitCode::ok : code;
        }
    }
    if (options.common.json) {
        out << report::explain_json(files);
    }
    return code;
}

}  // namespace swaplab::harness::cli
