#include "report/scenario_json.hpp"

#include "report/explain.hpp"
#include "scenario/language/vocabulary.hpp"

#include "swaplab/harness/specimen.hpp"

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

std::string explain_json(const std::vector<scenario::ScenarioFile>& files) {
    Json rows = Json::array();
    for (const scenario::ScenarioFile& file : files) {
        if (!file.runs.empty()) {
            rows.push_back({{"id", file.id}, {"file", file.path}, {"text", explain(file)}});
        }
    }
    return dump({{"schema", "swaplab.explain/1"}, {"scenarios", rows}});
}

std::string words_json(const std::string& prefix) {
    Json rows = Json::array();
    for (const scenario::ListedWord& word : scenario::listed_words(prefix)) {
        rows.push_back({{"path", word.path},
                        {"takes", word.takes},
                        {"stage", word.stage},
                        {"default", word.fallback},
                        {"says", word.says}});
    }
    return dump({{"schema", "swaplab.words/1"}, {"words", rows}});
}

std::string defects_json() {
    Json rows = Json::array();
    for (const DefectInfo& defect : defects()) {
        rows.push_back({{"name", defect.name}, {"says", defect.says}, {"source", defect.source}});
    }
    return dump({{"schema", "swaplab.defects/1"}, {"defects", rows}});
}

std::string error_json(ExitCode code, const std::string& kind, const std::string& text,
                       const sim::ErrorFields& fields) {
    Json list = Json::array();
    for (const sim::ErrorField& field : fields) {
        list.push_back({{"name", field.name}, {"value", field.value}});
    }
    return dump({{"schema", "swaplab.error/1"},
                 {"exit", static_cast<int>(code)},
                 {"kind", kind},
                 {"error", text},
                 {"fields", list}});
}

}  // namespace swaplab::harness::report
