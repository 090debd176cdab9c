// Verdicts on how a step ended: errors, refusals, findings.

#include "scenario/judge/check_judge.hpp"

#include "swaplab/sim/mutant.hpp"
#include "swaplab/sim/units.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <set>

namespace swaplab::harness::scenario {
namespace {

std::string without_spaces(const std::string& text) {
    std::string out;
    std::copy_if(text.begin(), text.end(), std::back_inserter(out),
                 [](char c) { return c != ' '; });
    return out;
}

/// A field names what is asked for when it is it, or a path that ends in it.
bool names(const sim::ErrorField& field, const std::string& wanted) {
    const std::string value = without_spaces(field.value);
    const std::string name = without_spaces(wanted);
    return value == name || (value.size() > name.size() + 1 && value.ends_with("." + name));
}

bool same_tensor(const CapturedTensor& a, const CapturedTensor& b) {
    return a.bytes == b.bytes && a.local_shape == b.local_shape &&
           a.global_shape == b.global_shape && a.address == b.address;
}

/// What differs between two states of one rank, or empty.
std::string changed(const RankState& before, const RankState& after) {
    for (const auto& [name, tensor] : before.params) {
        const auto found = after.params.find(name);
        if (found == after.params.end() || !same_tensor(found->second, tensor)) {
            return "parameter " + name;
        }
    }
    for (const View view : {View::step, View::state_dict}) {
        const CapturedView& a = before.views[static_cast<std::size_t>(view)];
        const CapturedView& b = after.views[static_cast<std::size_t>(view)];
        for (const auto& [name, keys] : a.state) {
            for (const auto& [key, tensor] : keys) {
                const auto found = b.state.find(name);
                const bool there = found != b.state.end() && found->second.count(key) != 0;
                // state_dict() makes new tensors each time: its bytes count, not its addresses.
                const bool same = there && (view == View::step && key != "step"
                                                ? same_tensor(found->second.at(key), tensor)
                                                : found->second.at(key).bytes == tensor.bytes);
                if (!same) {
                    return name + "." + key;
                }
            }
        }
        if (a.state.size() != b.state.size() || a.problem != b.problem) {
            return b.problem.empty() ? "the state" : b.problem;
        }
        for (std::size_t i = 0; i < a.groups.size(); ++i) {
            if (i >= b.groups.size() || !optim::same_value(a.groups[i], b.groups[i])) {
                return fmt::format("group {}", i);
            }
        }
    }
    return "";
}

std::string changed_memory(const StepRecord& record) {
    constexpr std::array kinds{sim::MemoryKind::device, sim::MemoryKind::pinned,
                               sim::MemoryKind::host};
    for (std::size_t i = 0; i < kinds.size(); ++i) {
        const std::int64_t kept =
            record.memory[i].now.requested - record.memory[i].before.requested;
        if (kept != 0) {
            return fmt::format("{} memory, {:+} B", sim::name_of(kinds[i]), kept);
        }
    }
    return "";
}

}  // namespace

std::string CheckJudge::fault_note() const {
    const auto& fault = all_.run_.steps[*index_].fault;
    if (SWAPLAB_MUTANT("judge.fault_unreached")) {
        return "";
    }
    if (fault && !ranks()[static_cast<std::size_t>(fault->rank)].fault_happened) {
        return fmt::format("the fault did not happen: rank {} did not pass {} {}", fault->rank,
                           fault->at,
                           sim::count_of(static_cast<std::uint64_t>(fault->nth), "time"));
    }
    return "";
}

void CheckJudge::runs() {
    const auto& all = ranks();
    for (std::size_t rank = 0; rank < all.size(); ++rank) {
        const StepRecord& record = all[rank];
        if (record.error && record.error->kind != "rank_lost") {
            check_.error_kind = record.error->kind.empty() ? "exception" : record.error->kind;
            const std::string first = first_line(record.error->text);
            if (first.size() < record.error->text.size()) {
                check_.details.push_back("error    " + record.error->text.substr(first.size() + 1));
            }
            return fail(fmt::format("rank {}: {}", rank, first));
        }
        if (record.too_slow) {
            check_.error_kind = "deadline";
            return fail(fmt::format("rank {}: took longer than {} ms", rank,
                                    all_.run_.steps[*index_].after.timeout_ms));
        }
        if (!record.reached || !record.ended) {
            check_.error_kind = "rank_lost";
            const std::string why = record.error              ? first_line(record.error->text)
                                    : record.findings.empty() ? "it was lost"
                                                              : record.findings.front().text;
            return fail(fmt::format("rank {} did not end the step: {}", rank, why));
        }
    }
    for (std::size_t rank = 0; rank < all.size(); ++rank) {
        if (all[rank].error) {
            check_.error_kind = all[rank].error->kind;
            return fail(fmt::format("rank {}: {}", rank, first_line(all[rank].error->text)));
        }
    }
    const std::string note = fault_note();
    note.empty() ? pass(fmt::format("ran on {} of {} ranks", all.size(), all.size())) : fail(note);
}

void CheckJudge::findings() {
    std::set<std::string> kinds;
    std::vector<sim::Finding> found;
    if (index_) {
        for (const StepRecord& record : ranks()) {
            found.insert(found.end(), record.findings.begin(), record.findings.end());
        }
    } else {
        found = all_.records_.end_findings;
    }
    for (const sim::Finding& finding : found) {
        kinds.insert(std::string(sim::name_of(finding.kind)));
    }
    constexpr std::size_t shown = 8;
    for (std::size_t i = 0; i < std::min(found.size(), shown); ++i) {
        check_.details.push_back("finding  " + std::string(sim::name_of(found[i].kind)) + ": " +
                                 found[i].text);
    }
    check_.measured = static_cast<std::int64_t>(found.size());
    const std::set<std::string> expected(expectation_.names.begin(), expectation_.names.end());
    const auto list = [](const std::set<std::string>& names) {
        return names.empty() ? "none" : join({names.begin(), names.end()});
    };
    kinds == expected
        ? pass("findings: " + list(kinds))
        : fail(fmt::format("findings: expected {}, found {}", list(expected), list(kinds)));
}

std::optional<std::string> CheckJudge::fails_wrongly(const StepRecord& record, int rank,
                                                     bool expected_here) const {
    const ErrorSpec& spec = expectation_.error;
    if (!expected_here) {
        return record.error ? std::optional(fmt::format("rank {} failed, too: {}", rank,
                                                        first_line(record.error->text)))
                            : std::nullopt;
    }
    if (!record.error) {
        return fmt::format("rank {} ran to its end, without an error", rank);
    }
    if (!spec.kind.empty() && record.error->kind != spec.kind) {
        return fmt::format("rank {}: expected {}, found {}: {}", rank, spec.kind,
                           record.error->kind.empty() ? "a foreign exception" : record.error->kind,
                           first_line(record.error->text));
    }
    for (const std::string& wanted : spec.naming) {
        const auto& fields = record.error->fields;
        const bool there =
            std::any_of(fields.begin(), fields.end(),
                        [&](const sim::ErrorField& field) { return names(field, wanted); });
        if (!there && !SWAPLAB_MUTANT("judge.names_ignored")) {
            return fmt::format("rank {}: the error does not carry \"{}\": {}", rank, wanted,
                               first_line(record.error->text));
        }
    }
    if (spec.within_ms && record.spent_ms > *spec.within_ms &&
        !SWAPLAB_MUTANT("judge.never_late")) {
        return fmt::format("rank {}: the error came after {} ms, not within {} ms", rank,
                           record.spent_ms, *spec.within_ms);
    }
    if (spec.leaves == ErrorSpec::Leaves::torn) {
        return record.after.torn ? std::nullopt
                                 : std::optional(fmt::format("rank {} is not marked torn", rank));
    }
    if (spec.leaves == ErrorSpec::Leaves::unchanged && !SWAPLAB_MUTANT("judge.change_allowed")) {
        std::string what = changed(record.before, record.after);
        what = what.empty() ? changed_memory(record) : what;
        what = what.empty() && record.after.torn != record.before.torn ? "the torn mark" : what;
        if (!what.empty()) {
            return fmt::format("rank {}: failed, but changed {}", rank, what);
        }
    }
    return std::nullopt;
}

void CheckJudge::failure() {
    const ErrorSpec& spec = expectation_.error;
    const auto& all = ranks();
    const auto& fault = all_.run_.steps[*index_].fault;
    std::int64_t failed = 0;
    std::string problem = fault_note();
    for (std::size_t i = 0; i < all.size(); ++i) {
        const int rank = static_cast<int>(i);
        const bool listed = std::find(spec.on.begin(), spec.on.end(), rank) != spec.on.end();
        const bool survivor = spec.on_survivors && !(fault && fault->rank == rank);
        failed += all[i].error ? 1 : 0;
        if (all[i].error && check_.error_kind.empty()) {
            check_.error_kind = all[i].error->kind;
            check_.details.push_back("error    " + all[i].error->text);
        }
        if (spec.on_survivors && !survivor) {
            continue;  // the rank with the fault ends as it likes
        }
        const auto wrong = fails_wrongly(all[i], rank, spec.on_all || listed || survivor);
        if (problem.empty() && wrong) {
            problem = *wrong;
        }
    }
    if (!problem.empty()) {
        return fail(problem);
    }
    const char* what = expectation_.subject == Subject::refused ? "refused" : "failed";
    const char* left = spec.leaves == ErrorSpec::Leaves::torn        ? ", marked torn"
                       : spec.leaves == ErrorSpec::Leaves::unchanged ? ", nothing changed"
                                                                     : "";
    pass(fmt::format("{} on {} of {} ranks{}", what, failed, all.size(), left));
}

}  // namespace swaplab::harness::scenario
