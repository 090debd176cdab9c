#pragma once

/// One run, played and judged.

#include "scenario/judge/judge.hpp"
#include "scenario/play/play.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace swaplab::harness::scenario {

/// caught: a case with `fails` that failed exactly there; counts as passed.
enum class Status : std::uint8_t { pass, caught, fail, skip, hang };

/// "PASS", "CAUGHT", ...
[[nodiscard]] std::string_view name_of(Status status) noexcept;

struct Verdict {
    Status status = Status::pass;
    std::string headline;  ///< the strongest number, or what failed
    std::vector<Check> checks;
    std::vector<std::string> failed;    ///< paths that failed and should not have
    std::vector<std::string> problems;  ///< "not caught: load.device.rise held (..)"
    bool refused_by_machine = false;    ///< it ended for want of memory or disk space
    std::uint64_t digest = 0;           ///< equal for equal seeds
    /// Of a run that is traced, by pass of its fault (one without).
    std::vector<std::vector<RankTrace>> traces;
};

/// Plays `run` with its twins and judges it. Throws StorageError for given files that cannot be
/// read. What fails otherwise outside of the ranks (this machine has not enough memory) fails the
/// run, with the reason as its problem.
[[nodiscard]] Verdict execute(const Run& run, const OnStep& on_step = {});

/// The same, then each expectation that held against its opposite: pass when all of those fail.
[[nodiscard]] Verdict execute_inverted(const Run& run, const OnStep& on_step = {});

/// What checks mean for a case: fills everything but the digest.
[[nodiscard]] Verdict conclude(const CaseSpec& which, std::vector<Check> checks);

}  // namespace swaplab::harness::scenario
