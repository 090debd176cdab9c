#include "scenario/verdict.hpp"

#include "swaplab/sim/digest.hpp"
#include "swaplab/sim/mutant.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace swaplab::harness::scenario {
namespace {

Twin play_twin(const Run& run, const History& history, const SetUp& present, bool adamw) {
    const Run twin = twin_run(run, history, present, adamw ? "adamw" : "");
    const Records records = play(twin);
    Twin out;
    if (!records.complete) {
        out.problem = "it ended early";
        for (const StepRecords& step : records.steps) {
            for (const StepRecord& record : step.ranks) {
                if (record.error) {
                    out.problem = record.error->text;
                }
            }
        }
        return out;
    }
    if (twin.steps.empty()) {
        out.states = records.start;
        return out;
    }
    out.last_step = records.steps.back().ranks;
    for (const StepRecord& record : out.last_step) {
        out.states.push_back(record.after);
    }
    return out;
}

/// How much a check that holds says about the run.
int strength(const Check& check) {
    if (check.by_default) {
        return 0;
    }
    switch (check.subject) {
        case Subject::refused:
        case Subject::error:
            return 6;
        case Subject::device:
            return 5;
        case Subject::cover:
            return 4;
        case Subject::everything:
        case Subject::params:
            return 3;
        case Subject::trace:
            return 2;
        default:
            return 1;
    }
}

std::string headline_of(const std::vector<Check>& checks) {
    const Check* best = nullptr;
    for (const Check& check : checks) {
        const bool better = best == nullptr || strength(check) > strength(*best);
        best = check.reached && check.ok && better ? &check : best;
    }
    if (best == nullptr) {
        return "no expectation was reached";
    }
    return fmt::format("{}: {}", best->path.substr(0, best->path.find('.')), best->summary);
}

/// What is wrong with the figure that a case says is found, or empty.
std::string wrong_figure(const FailSpec& fail, const Check& check) {
    const Node& wanted = *fail.found;
    if (wanted.is(Node::Kind::text) && wanted.text == check.error_kind) {
        return "";
    }
    const bool by_kind = check.subject == Subject::runs || check.subject == Subject::refused ||
                         check.subject == Subject::error;
    if (by_kind || !check.measured) {
        return fmt::format("found {}, not {}",
                           check.error_kind.empty() ? "no error" : check.error_kind,
                           show_plain(wanted));
    }
    Diagnostics diagnostics;
    const AmountOf what = check.unit == "B" ? AmountOf::bytes : AmountOf::count;
    const auto amount = read_amount(wanted, what, "found", diagnostics);
    const auto value = amount ? amount->value(check.units) : std::nullopt;
    if (!value) {
        return fmt::format("found = {} cannot be read as {}", show(wanted),
                           check.unit.empty() ? "a count" : check.unit);
    }
    return *value == *check.measured ? ""
                                     : fmt::format("found {} {}, not {} = {}", *check.measured,
                                                   check.unit, amount->text, *value);
}

const FailSpec* fail_of(const CaseSpec& which, const std::string& path) {
    const auto found = std::find_if(which.fails.begin(), which.fails.end(),
                                    [&](const FailSpec& fail) { return fail.path == path; });
    return found == which.fails.end() ? nullptr : &*found;
}

void note_uncaught(const CaseSpec& which, Verdict& verdict) {
    for (const FailSpec& fail : which.fails) {
        const auto is_it = [&](const Check& check) { return check.path == fail.path; };
        const auto& checks = verdict.checks;
        const bool caught = std::any_of(checks.begin(), checks.end(), [&](const Check& check) {
            return is_it(check) && check.reached && !check.ok;
        });
        const auto any = std::find_if(checks.begin(), checks.end(), is_it);
        if (!caught) {
            verdict.problems.push_back(fmt::format("not caught: {} {}", fail.path,
                                                   any != checks.end() && any->reached
                                                       ? "held (" + any->summary + ")"
                                                       : "was not reached"));
        }
    }
}

/// A run that nothing stopped has met all its expectations; one without any shows nothing.
void note_unreached(Verdict& verdict) {
    for (const Check& check : verdict.checks) {
        if (!check.reached) {
            verdict.problems.push_back(check.path + " was not reached");
        }
    }
    if (verdict.checks.empty()) {
        verdict.problems.emplace_back("nothing was checked");
    }
}

std::uint64_t digest_of(const Records& records, const std::vector<Check>& checks) {
    sim::RollingDigest digest;
    digest.add(records.digest);
    for (const Check& check : checks) {
        digest.add(check.path);
        digest.add(static_cast<std::uint64_t>((check.reached ? 2 : 0) + (check.ok ? 1 : 0)));
        digest.add(static_cast<std::uint64_t>(check.measured.value_or(0)));
    }
    for (const StepRecords& step : records.steps) {
        for (const StepRecord& record : step.ranks) {
            for (const auto& [name, tensor] : record.after.params) {
                digest.add(name);
                digest.add(std::span<const std::byte>(tensor.bytes));
            }
            digest.add(record.error ? record.error->kind : "");
        }
    }
    return digest.value();
}

bool hangs(const Records& records) {
    return std::any_of(records.steps.begin(), records.steps.end(), [](const StepRecords& step) {
        return std::any_of(step.ranks.begin(), step.ranks.end(), [](const StepRecord& record) {
            return record.too_slow || (record.error && record.error->kind == "deadline");
        });
    });
}

}  // namespace

std::string_view name_of(Status status) noexcept {
    constexpr std::array<std::string_view, 5> names{"PASS", "CAUGHT", "FAIL", "SKIP", "HANG"};
    return names[static_cast<std::size_t>(status)];
}

Verdict conclude(const CaseSpec& which, std::vector<Check> checks) {
    Verdict verdict;
    verdict.checks = std::move(checks);
    std::string as_reported;
    for (const Check& check : verdict.checks) {
        if (!check.reached || check.ok) {
            continue;
        }
        const FailSpec* fail = fail_of(which, check.path);
        if (fail == nullptr) {
            verdict.failed.push_back(check.path);
            continue;
        }
        as_reported = as_reported.empty() ? check.summary : as_reported;
        const std::string wrong = fail->found ? wrong_figure(*fail, check) : "";
        if (!wrong.empty()) {
            verdict.problems.push_back(fmt::format("{}: {}", check.path, wrong));
        }
    }
    if (!SWAPLAB_MUTANT("verdict.uncaught_passes")) {
        note_uncaught(which, verdict);
    }
    if (which.fails.empty() && verdict.failed.empty() &&
        !SWAPLAB_MUTANT("verdict.unreached_passes")) {
        note_unreached(verdict);
    }
    const bool good = verdict.failed.empty() && verdict.problems.empty();
    if (!which.fails.empty()) {
        verdict.status = good ? Status::caught : Status::fail;
        verdict.headline = good ? "as reported: " + as_reported : "";
        for (const std::string& path : verdict.failed) {
            verdict.problems.push_back("also failed " + path);
        }
    } else {
        verdict.status = good ? Status::pass : Status::fail;
        verdict.headline = good ? headline_of(verdict.checks) : "";
    }
    if (!good) {
        verdict.headline = join(verdict.failed.empty() ? verdict.problems : verdict.failed);
    }
    return verdict;
}

Verdict execute(const Run& run, const OnStep& on_step) {
    const Records records = play(run, on_step);
    Judge judge(run, records, [&](const History& history, const SetUp& present, bool adamw) {
        return play_twin(run, history, present, adamw);
    });
    Verdict verdict = conclude(run.which, judge.judge_all());
    if (hangs(records)) {
        verdict.status = Status::hang;
    }
    verdict.digest = digest_of(records, verdict.checks);
    return verdict;
}

Verdict execute_inverted(const Run& run, const OnStep& on_step) {
    const Records records = play(run, on_step);
    Judge judge(run, records, [&](const History& history, const SetUp& present, bool adamw) {
        return play_twin(run, history, present, adamw);
    });
    Verdict verdict;
    std::size_t tried = 0;
    const auto turn = [&](const Expectation& expectation, std::optional<std::size_t> index) {
        const Check straight = judge.judge(expectation, index);
        if (!straight.reached || !straight.ok) {
            return;
        }
        ++tried;
        Check check = judge.judge(opposite(expectation), index);
        check.path = expectation.path;
        if (check.ok) {
            verdict.failed.push_back(expectation.path);
            verdict.problems.push_back(
                fmt::format("the opposite of {} holds, too: {}", expectation.path, check.summary));
        }
        check.ok = !check.ok;
        verdict.checks.push_back(std::move(check));
    };
    for (std::size_t i = 0; i < run.steps.size(); ++i) {
        for (const Expectation& expectation : run.steps[i].expect) {
            turn(expectation, i);
        }
    }
    for (const Expectation& expectation : run.finals) {
        turn(expectation, std::nullopt);
    }
    verdict.status = verdict.failed.empty() ? Status::pass : Status::fail;
    verdict.headline =
        fmt::format("{} of {} opposites turned red", tried - verdict.failed.size(), tried);
    verdict.digest = digest_of(records, verdict.checks);
    return verdict;
}

}  // namespace swaplab::harness::scenario
