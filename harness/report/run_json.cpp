#include "report/run_report.hpp"

#include <nlohmann/json.hpp>

#ifndef SWAPLAB_VERSION
#error "SWAPLAB_VERSION comes from the build"
#endif

namespace swaplab::harness::report {
namespace {

using Json = nlohmann::ordered_json;
using scenario::Check;
using scenario::Status;

template <class T>
Json or_null(const std::optional<T>& value) {
    return value ? Json(*value) : Json();
}

Json check_json(const Check& check) {
    Json holders = Json::array();
    for (const scenario::TagBytes& holder : check.holders) {
        holders.push_back({{"tag", holder.tag}, {"rank", holder.rank}, {"bytes", holder.bytes}});
    }
    return {{"path", check.path},
            {"ok", check.ok},
            {"reached", check.reached},
            {"line", check.at.line},
            {"text", check.text},
            {"summary", check.summary},
            {"measured", or_null(check.measured)},
            {"bound", or_null(check.bound)},
            {"unit", check.unit},
            {"error_kind", check.error_kind},
            {"holders", holders}};
}

Json first_difference(const RunReport& run) {
    for (const Check& check : run.verdict.checks) {
        if (check.reached && !check.ok && check.first) {
            const scenario::FirstDifference& first = *check.first;
            return {{"rank", first.rank},
                    {"step", check.training_step},
                    {"parameter", first.tensor},
                    {"index", first.index},
                    {"expected_bits", first.expected_bits},
                    {"found_bits", first.found_bits},
                    {"ulp", first.ulp}};
        }
    }
    return nullptr;
}

const char* status_word(Status status) {
    switch (status) {
        case Status::pass:
            return "pass";
        case Status::caught:
            return "caught";
        case Status::fail:
            return "fail";
        case Status::skip:
            return "skip";
        case Status::hang:
            return "hang";
    }
    return "";
}

Json run_object(const RunReport& run) {
    Json cell = Json::object();
    for (const auto& [path, value] : run.cell) {
        cell[path] = value;
    }
    Json checks = Json::array();
    for (const Check& check : run.verdict.checks) {
        checks.push_back(check_json(check));
    }
    return {{"name", run.name},
            {"file", run.file},
            {"cell", cell},
            {"seed", run.seed},
            {"status", status_word(run.verdict.status)},
            {"expected", run.must_fail ? "fails" : "passes"},
            {"ms", run.milliseconds},
            {"headline", run.verdict.headline},
            {"problems", run.verdict.problems},
            {"checks", checks},
            {"first_difference", first_difference(run)},
            {"again", run.again}};
}

}  // namespace

std::string run_json(const std::vector<RunReport>& runs) {
    const Totals totals = total(runs);
    Json list = Json::array();
    for (const RunReport& run : runs) {
        list.push_back(run_object(run));
    }
    const Json document{{"schema", "swaplab.run/1"},
                        {"version", SWAPLAB_VERSION},
                        {"seed", runs.empty() ? 1 : runs.front().seed},
                        {"digest", totals.digest},
                        {"device", "simulated"},
                        {"exit", static_cast<int>(totals.exit)},
                        {"passed", totals.passed},
                        {"failed", totals.failed},
                        {"skipped", totals.skipped},
                        {"runs", list}};
    return document.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace swaplab::harness::report
