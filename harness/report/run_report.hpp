#pragma once

/// What `swaplab run` has to tell, and the three forms in which it does.

#include "scenario/judge/verdict.hpp"

#include "swaplab/harness/exit_code.hpp"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace swaplab::harness::report {

struct RunReport {
    std::string name;
    std::string file;
    std::vector<std::pair<std::string, std::string>> cell;  ///< path, value
    std::uint64_t seed = 1;
    bool must_fail = false;  ///< the case says `fails`
    bool patched = false;    ///< must fail without a defect, by what the case changes
    scenario::Verdict verdict;
    std::string skipped;  ///< why, for SKIP
    double milliseconds = 0;
    std::vector<std::string> again;  ///< the command that repeats it, word by word

    [[nodiscard]] bool is_bad() const noexcept {
        return verdict.status == scenario::Status::fail || verdict.status == scenario::Status::hang;
    }
};

struct Totals {
    std::size_t passed = 0;
    std::size_t failed = 0;
    std::size_t skipped = 0;
    std::size_t sound = 0;    ///< passed runs that had to pass
    std::size_t caught = 0;   ///< passed runs of defects
    std::size_t patched = 0;  ///< passed runs that a case broke without a defect
    std::string digest;       ///< 8 hex digits over all runs
    double milliseconds = 0;
    ExitCode exit = ExitCode::nothing;
};

[[nodiscard]] Totals total(const std::vector<RunReport>& runs);

/// How text looks.
struct Look {
    bool color = false;
    bool verbose = false;
    bool quiet = false;
};

/// The lines of one run; empty with Look::quiet unless it failed.
[[nodiscard]] std::string text_of(const RunReport& run, const Look& look, std::size_t name_width);
/// The closing lines. `inverted`: runs of --invert.
[[nodiscard]] std::string closing_text(const std::vector<RunReport>& runs, const Look& look,
                                       bool inverted);
/// The failure block of one run, without the first line.
[[nodiscard]] std::string failure_text(const RunReport& run);
/// Words joined for a shell.
[[nodiscard]] std::string shell_line(const std::vector<std::string>& words);

/// schema swaplab.run/1.
[[nodiscard]] std::string run_json(const std::vector<RunReport>& runs);
/// JUnit XML; one suite per scenario file.
[[nodiscard]] std::string junit_xml(const std::vector<RunReport>& runs);

}  // namespace swaplab::harness::report
