// Verdicts on failures, findings, states, buffers and traces. Figures: check_figures.cpp.

#include "scenario/check_judge.hpp"

#include "scenario/patch.hpp"

#include "swaplab/sim/units.hpp"

#include <fmt/format.h>

#include <algorithm>
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

std::string first_line(const std::string& text) {
    return text.substr(0, text.find('\n'));
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

/// Operations with the name of the checkpoint taken out, so that two of them compare.
std::vector<StorageOperation> comparable(std::vector<StorageOperation> operations) {
    for (StorageOperation& operation : operations) {
        for (std::string* path : {&operation.path, &operation.other_path}) {
            const std::size_t slash = path->find('/');
            const std::string first = path->substr(0, slash);
            const std::size_t suffix = first.rfind(".incomplete");
            *path = (suffix == std::string::npos ? "*" : "*.incomplete") +
                    (slash == std::string::npos ? "" : path->substr(slash));
        }
    }
    return operations;
}

std::string text_of(const sim::TraceEvent& event) {
    return fmt::format("{} {}{} [{}:{}]", event.operation, event.tag,
                       event.stream.empty() ? "" : " on " + event.stream, event.offset_bytes,
                       event.offset_bytes + event.bytes);
}

std::string text_of(const StorageOperation& operation) {
    return fmt::format("{} {} [{}:{}]", operation.operation, operation.path, operation.offset_bytes,
                       operation.offset_bytes + operation.bytes);
}

/// "operation 3: expected X, found Y", or empty when the sequences are equal.
template <class Operation>
std::string first_other(const std::vector<Operation>& found,
                        const std::vector<Operation>& expected) {
    for (std::size_t i = 0; i < std::max(found.size(), expected.size()); ++i) {
        const bool both = i < found.size() && i < expected.size();
        if (!both || !(found[i] == expected[i])) {
            return fmt::format("operation {}: expected {}, found {}", i,
                               i < expected.size() ? text_of(expected[i]) : "the end",
                               i < found.size() ? text_of(found[i]) : "the end");
        }
    }
    return "";
}

}  // namespace

CheckJudge::CheckJudge(Judge& all, const Expectation& expectation, std::optional<std::size_t> index,
                       Check& check)
    : all_(all), expectation_(expectation), index_(index), check_(check) {}

void CheckJudge::judge() {
    switch (expectation_.subject) {
        case Subject::runs:
            return runs();
        case Subject::findings:
            return findings();
        case Subject::refused:
        case Subject::error:
            return failure();
        case Subject::buffers:
            return buffers();
        case Subject::trace:
            return trace();
        case Subject::cover:
            return cover();
        case Subject::files:
            return files();
        case Subject::device:
        case Subject::pinned:
        case Subject::host:
        case Subject::h2d:
        case Subject::d2h:
            return figure();
        default:
            return expectation_.value ? state_value() : state();
    }
}

void CheckJudge::fail(const std::string& summary) {
    check_.ok = false;
    check_.summary = summary;
}

void CheckJudge::pass(const std::string& summary) {
    check_.ok = true;
    check_.summary = summary;
}

const std::vector<StepRecord>& CheckJudge::ranks() const {
    const std::size_t last = all_.records_.steps.size() - 1;
    return all_.records_.steps[index_.value_or(last)].ranks;
}

std::vector<int> CheckJudge::chosen_ranks() const {
    std::vector<int> out = expectation_.select.ranks;
    for (int rank = 0; out.empty() || rank < static_cast<int>(ranks().size()); ++rank) {
        if (!expectation_.select.ranks.empty()) {
            break;
        }
        out.push_back(rank);
    }
    return out;
}

std::string CheckJudge::fault_note() const {
    const auto& fault = all_.run_.steps[*index_].fault;
    if (fault && !ranks()[static_cast<std::size_t>(fault->rank)].fault_happened) {
        return fmt::format("the fault did not happen: rank {} did not pass {} {} time{}",
                           fault->rank, fault->at, fault->nth, fault->nth == 1 ? "" : "s");
    }
    return "";
}

void CheckJudge::runs() {
    const auto& all = ranks();
    for (std::size_t rank = 0; rank < all.size(); ++rank) {
        const StepRecord& record = all[rank];
        if (record.error && record.error->kind != "rank_lost") {
            check_.error_kind = record.error->kind.empty() ? "exception" : record.error->kind;
            check_.details.push_back("error    " + record.error->text);
            return fail(fmt::format("rank {}: {}", rank, first_line(record.error->text)));
        }
        if (record.too_slow) {
            check_.error_kind = "deadline";
            return fail(fmt::format("rank {}: took longer than {} ms", rank,
                                    all_.run_.steps[*index_].after.timeout_ms));
        }
        if (!record.reached || !record.ended) {
            check_.error_kind = "rank_lost";
            const std::string why =
                record.findings.empty() ? "it was lost" : record.findings.front().text;
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
        if (!there) {
            return fmt::format("rank {}: the error does not carry \"{}\": {}", rank, wanted,
                               first_line(record.error->text));
        }
    }
    if (spec.leaves == ErrorSpec::Leaves::torn) {
        return record.after.torn ? std::nullopt
                                 : std::optional(fmt::format("rank {} is not marked torn", rank));
    }
    if (spec.leaves == ErrorSpec::Leaves::unchanged) {
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

const SavedContent* CheckJudge::saved(const std::string& name) {
    const auto& contents = index_ ? all_.records_.steps[*index_].saved : all_.records_.end_saved;
    const auto found = contents.find(name);
    if (found == contents.end()) {
        fail(fmt::format("\"{}\" was not there when the step ended", name));
        return nullptr;
    }
    if (!found->second.problem.empty()) {
        fail(fmt::format("\"{}\" cannot be read: {}", name, first_line(found->second.problem)));
        return nullptr;
    }
    return &found->second;
}

const GlobalState* CheckJudge::found_state() {
    if (!expectation_.select.in.empty()) {
        const SavedContent* content = saved(expectation_.select.in);
        return content != nullptr ? &content->state : nullptr;
    }
    return &all_.state_after(index_.value_or(all_.records_.steps.size() - 1));
}

const GlobalState* CheckJudge::reference_state() {
    using Kind = Reference::Kind;
    const Reference& reference = expectation_.reference;
    const std::size_t here = index_.value_or(all_.records_.steps.size() - 1);
    switch (reference.kind) {
        case Kind::before:
            return &all_.state_before(here);
        case Kind::start:
            return &all_.state_at_start();
        case Kind::label:
            return &all_.state_after(reference.step_index);
        case Kind::save: {
            const SavedContent* content = saved(reference.name);
            return content != nullptr ? &content->state : nullptr;
        }
        default:
            break;
    }
    const bool adamw = reference.kind == Kind::adamw;
    const Twin& twin = all_.twin(here, adamw);
    if (!twin.problem.empty()) {
        fail(fmt::format("the {} run did not get here: {}", reference.name, twin.problem));
        return nullptr;
    }
    return &all_.twin_state(here, adamw);
}

std::string CheckJudge::reference_text() const {
    switch (expectation_.reference.kind) {
        case Reference::Kind::before:
            return "the state before the step";
        case Reference::Kind::start:
            return "the start";
        case Reference::Kind::label:
            return "step " + expectation_.reference.name;
        case Reference::Kind::save:
            return "\"" + expectation_.reference.name + "\"";
        case Reference::Kind::adamw:
            return "plain AdamW";
        default:
            return "the uninterrupted run";
    }
}

void CheckJudge::state() {
    const GlobalState* found = found_state();
    const GlobalState* expected = found != nullptr ? reference_state() : nullptr;
    if (expected == nullptr) {
        return;
    }
    check_.ok = true;
    for (const auto& [view, name] : {std::pair(View::step, "what the next step reads"),
                                     std::pair(View::state_dict, "what state_dict() returns")}) {
        const bool wanted = view == View::step ? expectation_.select.step_view
                                               : expectation_.select.state_dict_view;
        const bool first_only = expectation_.subject == Subject::params && view != View::step;
        if (wanted && check_.ok && !first_only) {
            conclude_states(
                compare_states(*found, *expected, expectation_.subject, expectation_.select, view),
                expectation_.subject == Subject::params ? nullptr : name);
        }
    }
}

void CheckJudge::state_value() {
    const GlobalState* found = found_state();
    if (found == nullptr) {
        return;
    }
    check_.ok = true;
    for (const auto& [view, name] : {std::pair(View::step, "what the next step reads"),
                                     std::pair(View::state_dict, "what state_dict() returns")}) {
        const bool wanted = view == View::step ? expectation_.select.step_view
                                               : expectation_.select.state_dict_view;
        if (wanted && check_.ok) {
            conclude_states(compare_values(*found, *expectation_.value, expectation_.subject,
                                           expectation_.select, view),
                            name);
        }
    }
}

void CheckJudge::conclude_states(const std::vector<TensorDifference>& differences,
                                 const char* view) {
    std::int64_t elements = 0;
    std::int64_t differing = 0;
    std::string equal;
    std::vector<std::string> also;
    const TensorDifference* largest = nullptr;
    for (const TensorDifference& one : differences) {
        elements += one.elements;
        differing += one.differing;
        const bool differs =
            expectation_.select.all_elements ? one.differing == one.elements : one.differing > 0;
        equal = !differs && one.elements > 0 && equal.empty() ? one.name : equal;
        if (one.differing > 0) {
            check_.first = check_.first ? check_.first : one.first;
            also.push_back(one.note.empty()
                               ? fmt::format("{} {} of {}", one.name, one.differing, one.elements)
                               : fmt::format("{}: {}", one.name, one.note));
            largest = largest == nullptr || one.largest > largest->largest ? &one : largest;
        }
    }
    check_.measured = differing;
    check_.unit = "elements";
    if (elements == 0 && differing == 0) {
        return fail("nothing is selected: no tensor with an element");
    }
    const std::string to = expectation_.value ? show(*expectation_.value) : reference_text();
    if (expectation_.relation == Relation::differs_from) {
        check_.first.reset();
        equal.empty()
            ? pass(fmt::format("{} of {} elements differ from {}", differing, elements, to))
            : fail(fmt::format("{} does not differ from {}", equal, to));
        return;
    }
    if (differing == 0) {
        return pass(expectation_.value
                        ? fmt::format("{} is {}", name_of(expectation_.subject), to)
                        : fmt::format("equal to {}, bit for bit, {} elements", to,
                                      sim::with_thousands(static_cast<std::uint64_t>(elements))));
    }
    if (view != nullptr) {
        check_.details.push_back(fmt::format("in       {}", view));
    }
    constexpr std::size_t shown = 8;
    if (also.size() > shown) {
        also[shown] = fmt::format("and {} more", also.size() - shown);
        also.resize(shown + 1);
    }
    std::string line = "also     " + join(also);
    if (largest != nullptr && largest->largest > 0) {
        line += fmt::format("; largest difference {:.3e} at {}{}", largest->largest, largest->name,
                            largest->largest_index);
    }
    check_.details.push_back(line);
    fail(fmt::format("{} of {} elements differ from {}", differing, elements, to));
}

void CheckJudge::buffers() {
    const auto* reference = expectation_.relation == Relation::equals ? nullptr : reference_ranks();
    if (expectation_.relation != Relation::equals && reference == nullptr) {
        return;
    }
    const Selectors& select = expectation_.select;
    std::int64_t looked_at = 0;
    std::int64_t other = 0;
    std::string which;
    for (std::size_t rank = 0; rank < ranks().size(); ++rank) {
        const auto& view = ranks()[rank].after.views[static_cast<std::size_t>(View::step)];
        for (const auto& [name, keys] : view.state) {
            for (const auto& [key, tensor] : keys) {
                const auto has = [](const std::vector<std::string>& list, const std::string& one) {
                    return std::find(list.begin(), list.end(), one) != list.end();
                };
                const bool wanted = select.keys.empty() ? key != "step" : has(select.keys, key);
                if (!wanted || (!select.of.empty() && !has(select.of, name)) ||
                    tensor.bytes.empty()) {
                    continue;
                }
                ++looked_at;
                bool same = false;
                if (reference == nullptr) {
                    same = has(expectation_.names, std::string(sim::name_of(tensor.memory)));
                } else if (rank < reference->size()) {
                    const auto& there =
                        (*reference)[rank].after.views[static_cast<std::size_t>(View::step)].state;
                    const auto found = there.find(name);
                    same = found != there.end() && found->second.count(key) != 0 &&
                           found->second.at(key).address == tensor.address;
                }
                if (!same) {
                    ++other;
                    which = which.empty() ? fmt::format("rank {}: {}.{} in {} memory", rank, name,
                                                        key, sim::name_of(tensor.memory))
                                          : which;
                }
            }
        }
    }
    check_.measured = other;
    check_.unit = "buffers";
    const bool differs = expectation_.relation == Relation::differs_from;
    if (looked_at == 0) {
        return fail("nothing is selected: no moment with an element");
    }
    const bool good = differs ? other == looked_at : other == 0;
    good ? pass(fmt::format("{} moments as expected", looked_at))
         : fail(fmt::format("{} of {} moments are elsewhere; {}", other, looked_at, which));
}

const std::vector<StepRecord>* CheckJudge::reference_ranks() {
    using Kind = Reference::Kind;
    const Reference& reference = expectation_.reference;
    const std::size_t here = index_.value_or(all_.records_.steps.size() - 1);
    if (reference.kind == Kind::label) {
        return &all_.records_.steps[reference.step_index].ranks;
    }
    if (reference.kind == Kind::before && here > 0) {
        return &all_.records_.steps[here - 1].ranks;
    }
    if (reference.kind == Kind::uninterrupted || reference.kind == Kind::adamw) {
        const Twin& twin = all_.twin(here, reference.kind == Kind::adamw);
        if (twin.problem.empty() && !twin.last_step.empty()) {
            return &twin.last_step;
        }
        fail(twin.problem.empty() ? "the reference run has no step" : twin.problem);
        return nullptr;
    }
    fail(fmt::format("{} is no step that could be compared", reference_text()));
    return nullptr;
}

void CheckJudge::trace() {
    const auto* reference = reference_ranks();
    if (reference == nullptr) {
        return;
    }
    const auto wanted = [&](const char* part) {
        const auto& names = expectation_.names;
        return names.empty() || std::find(names.begin(), names.end(), part) != names.end();
    };
    const bool storage_named = !expectation_.names.empty() && wanted("storage");
    std::string other = reference->size() == ranks().size() ? "" : "another number of ranks";
    std::size_t operations = 0;
    for (std::size_t rank = 0; rank < ranks().size() && other.empty(); ++rank) {
        const StepRecord& found = ranks()[rank];
        const StepRecord& expected = (*reference)[rank];
        if (wanted("device")) {
            other = first_other(found.trace, expected.trace);
            operations += found.trace.size();
        }
        const bool both = !found.storage.empty() && !expected.storage.empty();
        if (other.empty() && wanted("storage") && (storage_named || both)) {
            other = first_other(comparable(found.storage), comparable(expected.storage));
            operations += found.storage.size();
        }
        other = other.empty() ? other : fmt::format("rank {}, {}", rank, other);
    }
    check_.measured = static_cast<std::int64_t>(operations);
    if (other.empty() && operations == 0) {
        return fail("nothing is selected: no operation on either side");
    }
    const bool differs = expectation_.relation == Relation::differs_from;
    const bool good = differs ? !other.empty() : other.empty();
    good ? pass(fmt::format("the same {} operations as {}", operations, reference_text()))
         : fail(other.empty() ? fmt::format("the same operations as {}", reference_text()) : other);
}

}  // namespace swaplab::harness::scenario
