// What all verdicts share, and verdicts on states.

#include "scenario/judge/check_judge.hpp"

#include "swaplab/sim/mutant.hpp"
#include "swaplab/sim/units.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace swaplab::harness::scenario {
namespace {

/// "1,024 of 32,768".
std::string share(std::int64_t part, std::int64_t whole) {
    return fmt::format("{} of {}", sim::with_thousands(static_cast<std::uint64_t>(part)),
                       sim::with_thousands(static_cast<std::uint64_t>(whole)));
}

}  // namespace

std::string first_line(const std::string& text) {
    return text.substr(0, text.find('\n'));
}

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
        case Subject::d2d:
        case Subject::read:
        case Subject::written:
        case Subject::syncs:
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
    const bool params = expectation_.subject == Subject::params;  // have no views
    for (const auto& [view, name] : {std::pair(View::step, "what the next step reads"),
                                     std::pair(View::state_dict, "what state_dict() returns")}) {
        const bool wanted = params               ? view == View::step
                            : view == View::step ? expectation_.select.step_view
                                                 : expectation_.select.state_dict_view;
        if (SWAPLAB_MUTANT("judge.one_view") && view == View::state_dict) {
            continue;
        }
        if (wanted && check_.ok) {
            conclude_states(
                compare_states(*found, *expected, expectation_.subject, expectation_.select, view),
                params ? nullptr : name);
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
                               ? fmt::format("{} {}", one.name, share(one.differing, one.elements))
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
            ? pass(fmt::format("{} elements differ from {}", share(differing, elements), to))
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
    fail(fmt::format("{} elements differ from {}", share(differing, elements), to));
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

}  // namespace swaplab::harness::scenario
