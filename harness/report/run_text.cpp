#include "report/run_report.hpp"

#include "swaplab/sim/digest.hpp"
#include "swaplab/sim/units.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace swaplab::harness::report {
namespace {

using scenario::Check;
using scenario::Status;

std::string painted(const std::string& text, const char* color, const Look& look) {
    return look.color ? fmt::format("\x1b[{}m{}\x1b[0m", color, text) : text;
}

const char* color_of(Status status) {
    return status == Status::fail || status == Status::hang ? "31"
           : status == Status::skip                         ? "33"
                                                            : "32";
}

/// Checks that failed although the case does not say so; all failed ones of a sound case.
bool is_wrong(const RunReport& run, const Check& check) {
    const auto& failed = run.verdict.failed;
    return std::find(failed.begin(), failed.end(), check.path) != failed.end() && !check.ok;
}

std::string check_block(const RunReport& run, const Check& check) {
    std::string out;
    const std::string where =
        check.at.line > 0 ? fmt::format("{}:{}:{}", run.file, check.at.line, check.at.column)
                          : run.file;
    out += fmt::format("  {}: {}\n", where, check.text);
    out += fmt::format("  {}: {}\n", check.path, check.summary);
    if (check.first) {
        const scenario::FirstDifference& first = *check.first;
        out += fmt::format("  first    step {}, rank {}, {}, index {}\n", check.training_step,
                           first.rank, first.tensor, first.index);
        out +=
            fmt::format("             expected {}   {:.9g}\n", first.expected_bits, first.expected);
        out += fmt::format("             found    {}   {:.9g}   {} ULP apart\n", first.found_bits,
                           first.found, sim::with_thousands(first.ulp));
    }
    for (const std::string& detail : check.details) {
        std::string indented = detail;
        for (std::size_t at = indented.find('\n'); at != std::string::npos;
             at = indented.find('\n', at + 1)) {
            indented.insert(at + 1, "           ");
        }
        out += "  " + indented + "\n";
    }
    return out;
}

std::string verbose_lines(const RunReport& run) {
    std::string out;
    for (const Check& check : run.verdict.checks) {
        const char* word = !check.reached ? "-" : check.ok ? "ok" : "fails";
        out += fmt::format("  {:<6} {:<36} {}\n", word, check.path, check.summary);
    }
    return out;
}

}  // namespace

Totals total(const std::vector<RunReport>& runs) {
    Totals out;
    sim::RollingDigest digest;
    for (const RunReport& run : runs) {
        const Status status = run.verdict.status;
        digest.add(run.name);
        digest.add(run.verdict.digest);
        out.milliseconds += run.milliseconds;
        if (status == Status::skip) {
            ++out.skipped;
            continue;
        }
        if (run.is_bad()) {
            ++out.failed;
            out.exit = worse(out.exit, status == Status::hang           ? ExitCode::hang
                                       : run.verdict.refused_by_machine ? ExitCode::environment
                                                                        : ExitCode::failed);
            continue;
        }
        ++out.passed;
        ++(status != Status::caught ? out.sound : run.patched ? out.patched : out.caught);
    }
    if (out.passed > 0 && out.failed == 0) {
        out.exit = ExitCode::ok;
    }
    out.digest = digest.short_hex();
    return out;
}

std::string shell_line(const std::vector<std::string>& words) {
    std::vector<std::string> quoted;
    for (const std::string& word : words) {
        const bool plain = word.find_first_not_of(
                               "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                               "_-./=") == std::string::npos;
        std::string inner;
        for (const char c : word) {
            inner += c == '\'' ? std::string("'\\''") : std::string(1, c);
        }
        quoted.push_back(plain ? word : "'" + inner + "'");
    }
    return scenario::join(quoted, " ");
}

std::string failure_text(const RunReport& run) {
    std::string out;
    for (const Check& check : run.verdict.checks) {
        if (is_wrong(run, check)) {
            out += check_block(run, check);
        }
    }
    for (const std::string& problem : run.verdict.problems) {
        out += "  " + problem + "\n";
    }
    return out + fmt::format("  again    {}\n", shell_line(run.again));
}

std::string text_of(const RunReport& run, const Look& look, std::size_t name_width) {
    const Status status = run.verdict.status;
    if (look.quiet && !run.is_bad()) {
        return "";
    }
    const std::string word = fmt::format("{:<6}", scenario::name_of(status));
    const std::string what = status == Status::skip ? run.skipped : run.verdict.headline;
    std::string out =
        fmt::format("{}  {:<{}}  {:>5.0f} ms   {}\n", painted(word, color_of(status), look),
                    run.name, name_width, run.milliseconds, what);
    if (look.verbose) {
        out += verbose_lines(run);
    }
    if (run.is_bad()) {
        out += failure_text(run);
    }
    return out;
}

std::string closing_text(const std::vector<RunReport>& runs, const Look& look, bool inverted) {
    const Totals totals = total(runs);
    std::string out;
    std::vector<std::string> failed;
    for (const RunReport& run : runs) {
        if (run.is_bad()) {
            failed.push_back(run.name + " " + run.verdict.headline);
        }
    }
    if (!failed.empty()) {
        out += painted("failed:", "31", look) + " " + scenario::join(failed, "; ") + "\n";
    }
    if (inverted) {
        out += sim::count_of(runs.size(), "run") + " against their opposites";
    } else {
        out += fmt::format("{} passed, {} caught", sim::count_of(totals.sound, "sound run"),
                           sim::count_of(totals.caught, "faulty run"));
        out += totals.patched == 0 ? ""
                                   : fmt::format(", {} broken as the case says",
                                                 sim::count_of(totals.patched, "sound run"));
    }
    out += fmt::format("   digest {}   {:.1f} s\n", totals.digest, totals.milliseconds / 1000);
    return out + fmt::format("{} passed, {} failed, {} skipped\n", totals.passed, totals.failed,
                             totals.skipped);
}

}  // namespace swaplab::harness::report
