#include "report/scenario_json.hpp"

#include <nlohmann/json.hpp>

namespace swaplab::harness::report {
namespace {

using Json = nlohmann::ordered_json;

/// Ends with a newline; bytes that are no UTF-8 are replaced, never thrown over.
std::string dump(const Json& json) {
    return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace

std::string list_json(const std::vector<scenario::ScenarioFile>& files) {
    Json rows = Json::array();
    for (const scenario::ScenarioFile& file : files) {
        Json runs = Json::array();
        for (const scenario::Run& run : file.runs) {
            runs.push_back(run.name);
        }
        rows.push_back({{"id", file.id},
                        {"file", file.path},
                        {"name", file.said("name")},
                        {"why", file.said("why")},
                        {"issue", file.said("issue")},
                        {"cases", file.cases},
                        {"cells", file.cells},
                        {"errors", file.diagnostics.error_count()},
                        {"runs", runs}});
    }
    return dump({{"schema", "swaplab.list/1"}, {"scenarios", rows}});
}

std::string lint_json(const std::vector<scenario::ScenarioFile>& files) {
    Json findings = Json::array();
    std::size_t errors = 0;
    for (const scenario::ScenarioFile& file : files) {
        errors += file.diagnostics.error_count();
        for (const scenario::Diagnostic& d : file.diagnostics.all()) {
            findings.push_back({{"file", file.path},
                                {"line", d.at.line},
                                {"column", d.at.column},
                                {"severity", d.warning ? "warning" : "error"},
                                {"code", d.code},
                                {"message", d.message},
                                {"hint", d.hint}});
        }
        for (const auto& [at, path] : file.unproven) {
            findings.push_back({{"file", file.path},
                                {"line", at.line},
                                {"column", at.column},
                                {"severity", "note"},
                                {"code", "unproven"},
                                {"message", "no case names " + path + " in fails"},
                                {"hint", ""}});
        }
    }
    return dump({{"schema", "swaplab.lint/1"},
                 {"exit", errors != 0 ? 2 : 0},
                 {"files", files.size()},
                 {"errors", errors},
                 {"findings", findings}});
}

}  // namespace swaplab::harness::report
