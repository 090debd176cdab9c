#include "report/run_report.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace swaplab::harness::report {
namespace {

using scenario::Status;

std::string escaped(const std::string& text) {
    std::string out;
    for (const char c : text) {
        switch (c) {
            case '&':
                out += "&amp;";
                break;
            case '<':
                out += "&lt;";
                break;
            case '>':
                out += "&gt;";
                break;
            case '"':
                out += "&quot;";
                break;
            case '\n':
                out += "\n";
                break;
            case '\t':
                out += "\t";
                break;
            default:
                out += static_cast<unsigned char>(c) < 0x20 ? '?' : c;
        }
    }
    return out;
}

int line_of(const RunReport& run) {
    for (const scenario::Check& check : run.verdict.checks) {
        if (check.reached && !check.ok) {
            return check.at.line;
        }
    }
    return run.verdict.checks.empty() ? 0 : run.verdict.checks.front().at.line;
}

std::string test_case(const RunReport& run) {
    const std::size_t slash = run.name.find('/');
    const std::string family = slash == std::string::npos ? "" : run.name.substr(0, slash);
    const std::string name = slash == std::string::npos ? run.name : run.name.substr(slash + 1);
    const std::string open = fmt::format(
        R"(  <testcase classname="{}" name="{}" file="{}" line="{}" time="{:.3f}")",
        escaped(family), escaped(name), escaped(run.file), line_of(run), run.milliseconds / 1000);
    if (run.verdict.status == Status::skip) {
        return open + fmt::format(">\n    <skipped message=\"{}\"/>\n  </testcase>\n",
                                  escaped(run.skipped));
    }
    if (!run.is_bad()) {
        return open + "/>\n";
    }
    return open + fmt::format(
                      ">\n    <failure type=\"{}\" message=\"{}\">{}seed {}, digest "
                      "{:016x}</failure>\n  </testcase>\n",
                      escaped(scenario::join(run.verdict.failed)), escaped(run.verdict.headline),
                      escaped(failure_text(run)), run.seed, run.verdict.digest);
}

}  // namespace

std::string junit_xml(const std::vector<RunReport>& runs) {
    const Totals totals = total(runs);
    std::string out = fmt::format(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
        "<testsuites tests=\"{}\" failures=\"{}\" skipped=\"{}\" time=\"{:.3f}\">\n",
        runs.size(), totals.failed, totals.skipped, totals.milliseconds / 1000);
    for (std::size_t i = 0; i < runs.size();) {
        std::size_t end = i;
        std::string cases;
        std::vector<RunReport> suite;
        for (; end < runs.size() && runs[end].file == runs[i].file; ++end) {
            cases += test_case(runs[end]);
            suite.push_back(runs[end]);
        }
        const Totals part = total(suite);
        out += fmt::format(
            "<testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" skipped=\"{}\" "
            "time=\"{:.3f}\">\n{}"
            "</testsuite>\n",
            escaped(runs[i].file), suite.size(), part.failed, part.skipped,
            part.milliseconds / 1000, cases);
        i = end;
    }
    return out + "</testsuites>\n";
}

}  // namespace swaplab::harness::report
