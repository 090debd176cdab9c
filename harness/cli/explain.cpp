#include "report/explain.hpp"

#include "cli/commands.hpp"
#include "scenario/selection.hpp"

#include <ostream>

namespace swaplab::harness::cli {

ExitCode explain_command(const LintOptions& options, std::ostream& out, std::ostream& err) {
    ExitCode code = ExitCode::nothing;
    for (const scenario::Selection& selection : scenario::select_scenarios(options.paths)) {
        const auto file = scenario::load_scenario(selection.file, options.overrides);
        for (const scenario::Diagnostic& diagnostic : file.diagnostics.all()) {
            err << scenario::format(diagnostic, file.path, file.source);
        }
        if (file.diagnostics.has_errors()) {
            code = worse(code, ExitCode::usage);
        } else if (!file.runs.empty()) {
            out << report::explain(file);
            code = code == ExitCode::nothing ? ExitCode::ok : code;
        }
    }
    return code;
}

}  // namespace swaplab::harness::cli
