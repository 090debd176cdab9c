#include "scenario/judge/verdict.hpp"

#include "scenario/judge/each_pass.hpp"
#include "scenario/judge/unseen.hpp"
#include "scenario/play/orders.hpp"
#include "scenario/play/step_error.hpp"

#include "swaplab/sim/digest.hpp"
#include "swaplab/sim/error.hpp"
#include "swaplab/sim/mutant.hpp"
#include "swaplab/sim/units.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <exception>
#include <stdexcept>

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

/// What a rank's device did and held in a step that it ended.
void add_figures(const StepRecord& record, sim::RollingDigest& digest) {
    for (const MemoryFigures& figures : record.memory) {
        for (const Bytes2& bytes : {figures.before, figures.peak, figures.now}) {
            digest.add(static_cast<std::uint64_t>(bytes.requested));
            digest.add(static_cast<std::uint64_t>(bytes.rounded));
        }
    }
    for (const sim::TraceEvent& event : record.trace) {
        digest.add(event.operation);
        digest.add(event.tag);
        digest.add(event.bytes);
    }
    for (const sim::Finding& finding : record.findings) {
        digest.add(sim::name_of(finding.kind));
    }
    digest.add(std::uint64_t{record.storage.size()});
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
            if (record.ended) {
                add_figures(record, digest);
            }
        }
    }
    return digest.value();
}

/// Fails the run that this machine cannot carry; others may go on. Given files that cannot be read
/// are the caller's affair.
template <class Work>
Verdict failing_alone(const Work& work) {
    try {
        return work();
    } catch (const sim::Error&) {
        throw;
    } catch (...) {
        if (SWAPLAB_MUTANT("verdict.foreign_ends_all")) {
            throw;
        }
        Verdict verdict;
        verdict.status = Status::fail;
        const StepError error = step_error(std::current_exception(), 0, "run");
        verdict.refused_by_machine = is_machines_refusal(error);
        verdict.headline = error.text;
        verdict.problems = {verdict.headline};
        return verdict;
    }
}

template <class Predicate>
bool any_record(const Records& records, Predicate predicate) {
    return std::any_of(records.steps.begin(), records.steps.end(), [&](const StepRecords& step) {
        return std::any_of(step.ranks.begin(), step.ranks.end(), predicate);
    });
}

bool hangs(const Records& records) {
    return any_record(records, [](const StepRecord& record) {
        return record.too_slow || (record.error && record.error->kind == "deadline");
    });
}

bool refused_by_machine(const Records& records) {
    return any_record(records, [](const StepRecord& record) {
        return record.error && is_machines_refusal(*record.error);
    });
}

/// Defects are reported ones; what a patch of a sound case breaks is said by that case alone.
const char* said_by(const CaseSpec& which) {
    return which.defects.empty() ? "as the case says: " : "as reported: ";
}

}  // namespace

std::string_view name_of(Status status) noexcept {
    constexpr std::array<std::string_view, 5> names{"PASS", "CAUGHT", "FAIL", "SKIP", "HANG"};
    return names[static_cast<std::size_t>(status)];
}

Verdict conclude(const CaseSpec& which, std::vector<Check> checks) {
    Verdict verdict;
    verdict.checks = std::move(checks);
    std::string first_failed;
    for (const Check& check : verdict.checks) {
        if (!check.reached || check.ok) {
            continue;
        }
        const FailSpec* fail = fail_of(which, check.path);
        if (fail == nullptr) {
            verdict.failed.push_back(check.path);
            continue;
        }
        first_failed = first_failed.empty() ? check.summary : first_failed;
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
        verdict.headline = good ? said_by(which) + first_failed : "";
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

namespace {

/// One telling of a story, or several that are judged as one.
struct Told {
    std::vector<Check> checks;
    std::vector<std::uint64_t> digests;
    bool hung = false;
    bool refused = false;
    std::vector<std::vector<RankTrace>> traces;
};

/// Tells `run` once, and returns which of its orders that was.
Orders tell(const Run& run, const OnStep& on_step, Told& told, std::vector<Check>& found) {
    Records records = play(run, on_step);
    told.traces.push_back(std::move(records.traces));
    Judge judge(run, records, [&](const History& history, const SetUp& present, bool adamw) {
        return play_twin(run, history, present, adamw);
    });
    found = judge.judge_all();
    set_unseen_aside(run, found);
    told.digests.push_back(digest_of(records, found));
    told.hung = told.hung || hangs(records);
    told.refused = told.refused || refused_by_machine(records);
    return records.orders;
}

[[noreturn]] void refuse_orders() {
    throw std::length_error(
        fmt::format("the operations of this story have more than {} orders: schedule = "
                    "\"exhaustive\" is for few operations, \"pct\" tries some orders of many",
                    sim::with_thousands(orders_max)));
}

/// Tells `run` in each order of what its devices do, if it asks for that.
std::vector<Check> tell_in_all_orders(Run run, const OnStep& on_step, Told& told) {
    std::vector<std::vector<Check>> all(1);
    const Orders first = tell(run, on_step, told, all.front());
    if (fewest_orders(first) > orders_max) {
        refuse_orders();
    }
    run.orders = next_orders(first);
    while (!run.orders.empty()) {
        if (all.size() == orders_max) {
            refuse_orders();
        }
        all.emplace_back();
        run.orders = next_orders(tell(run, on_step, told, all.back()));
    }
    std::vector<Check> checks;
    for (std::size_t i = 0; i < all.size(); ++i) {
        add_telling(checks, std::move(all[i]), {"order", i + 1, all.size()});
    }
    return checks;
}

Verdict play_and_judge(const Run& run, const OnStep& on_step) {
    const std::vector<Run> runs = runs_of_each_pass(run, on_step);
    Told told;
    for (std::size_t i = 0; i < runs.size(); ++i) {
        add_telling(told.checks, tell_in_all_orders(runs[i], on_step, told),
                    {"pass", i + 1, runs.size()});
    }
    Verdict verdict = conclude(run.which, std::move(told.checks));
    verdict.status = told.hung ? Status::hang : verdict.status;
    verdict.refused_by_machine = told.refused;
    verdict.traces = std::move(told.traces);
    sim::RollingDigest all;
    for (const std::uint64_t one : told.digests) {
        all.add(one);
    }
    verdict.digest = told.digests.size() == 1 ? told.digests.front() : all.value();
    return verdict;
}

Verdict play_and_invert(const Run& run, const OnStep& on_step) {
    const Records records = play(run, on_step);
    Judge judge(run, records, [&](const History& history, const SetUp& present, bool adamw) {
        return play_twin(run, history, present, adamw);
    });
    Verdict verdict;
    std::size_t tried = 0;
    std::size_t turned = 0;
    const auto turn = [&](const Expectation& expectation, std::optional<std::size_t> index) {
        const Check straight = judge.judge(expectation, index);
        if (!straight.reached || !straight.ok) {
            // A sound case reaches and meets them all: each of its expectations is turned.
            if (run.which.fails.empty()) {
                verdict.failed.push_back(expectation.path);
                verdict.problems.push_back(
                    fmt::format("{} has no opposite to try: {}", expectation.path,
                                straight.reached ? straight.summary : "it was not reached"));
            }
            return;
        }
        ++tried;
        Check check = judge.judge(opposite(expectation), index);
        check.path = expectation.path;
        turned += check.ok ? 0U : 1U;
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
    verdict.headline = fmt::format("{} of {} opposites turned red", turned, tried);
    verdict.digest = digest_of(records, verdict.checks);
    return verdict;
}

}  // namespace

Verdict execute(const Run& run, const OnStep& on_step) {
    return failing_alone([&] { return play_and_judge(run, on_step); });
}

Verdict execute_inverted(const Run& run, const OnStep& on_step) {
    return failing_alone([&] {
        Verdict verdict;
        for (const Run& one : runs_of_each_pass(run, on_step)) {
            verdict = play_and_invert(one, on_step);
            if (verdict.status != Status::pass) {
                break;
            }
        }
        return verdict;
    });
}

}  // namespace swaplab::harness::scenario
