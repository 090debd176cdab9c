#include "scenario/judge/judge.hpp"

#include "scenario/judge/check_judge.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace swaplab::harness::scenario {
namespace {

GlobalState assembled(const std::vector<RankState>& states) {
    std::vector<const RankState*> pointers;
    for (const RankState& state : states) {
        pointers.push_back(&state);
    }
    return assemble(pointers);
}

GlobalState assembled(const std::vector<StepRecord>& ranks, RankState StepRecord::*which) {
    std::vector<const RankState*> pointers;
    for (const StepRecord& record : ranks) {
        pointers.push_back(&(record.*which));
    }
    return assemble(pointers);
}

}  // namespace

Judge::Judge(const Run& run, const Records& records, TwinPlayer play_twin)
    : run_(run), records_(records), play_twin_(std::move(play_twin)) {}

const Twin& Judge::twin(std::size_t index, bool adamw) {
    const auto key = std::pair(index, adamw);
    const auto found = twins_.find(key);
    if (found != twins_.end()) {
        return found->second;
    }
    const StepRecord& record = records_.steps[index].ranks.front();
    Twin twin;
    if (!record.history || !record.history->known) {
        twin.problem = "the step has no history to follow";
    } else {
        twin = play_twin_(*record.history, run_.steps[index].after, adamw);
    }
    return twins_.emplace(key, std::move(twin)).first->second;
}

const GlobalState& Judge::twin_state(std::size_t index, bool adamw) {
    const auto name = fmt::format("twin {} {}", index, adamw);
    auto found = states_.find(name);
    if (found == states_.end()) {
        found = states_.emplace(name, assembled(twin(index, adamw).states)).first;
    }
    return found->second;
}

const GlobalState& Judge::state_after(std::size_t index) {
    const auto name = fmt::format("after {}", index);
    auto found = states_.find(name);
    if (found == states_.end()) {
        const auto& ranks = records_.steps[index].ranks;
        found = states_.emplace(name, assembled(ranks, &StepRecord::after)).first;
    }
    return found->second;
}

const GlobalState& Judge::state_before(std::size_t index) {
    const auto name = fmt::format("before {}", index);
    auto found = states_.find(name);
    if (found == states_.end()) {
        const auto& ranks = records_.steps[index].ranks;
        found = states_.emplace(name, assembled(ranks, &StepRecord::before)).first;
    }
    return found->second;
}

const GlobalState& Judge::state_at_start() {
    auto found = states_.find("start");
    if (found == states_.end()) {
        found = states_.emplace("start", assembled(records_.start)).first;
    }
    return found->second;
}

Check Judge::judge(const Expectation& expectation, std::optional<std::size_t> index) {
    Check check;
    check.path = expectation.path;
    check.at = expectation.at;
    check.text = expectation.text;
    check.subject = expectation.subject;
    check.by_default = expectation.by_default;
    const auto reached = [&](std::size_t i) {
        const auto& ranks = records_.steps[i].ranks;
        return std::any_of(ranks.begin(), ranks.end(),
                           [](const StepRecord& record) { return record.reached; });
    };
    check.reached = index ? reached(*index) : records_.complete;
    // After an unexpected end, ranks have no common state to compare.
    const bool common = !index || run_.steps[*index].may_fail() ||
                        expectation.subject == Subject::runs ||
                        expectation.subject == Subject::findings || ran_everywhere(*index);
    if (!check.reached || !common) {
        check.reached = false;
        check.summary = "not reached";
        return check;
    }
    if (index) {
        const auto& history = records_.steps[*index].ranks.front().history;
        check.training_step = history ? history->training_steps : 0;
    }
    CheckJudge(*this, expectation, index, check).judge();
    return check;
}

bool Judge::ran_everywhere(std::size_t index) const {
    const auto& ranks = records_.steps[index].ranks;
    return std::all_of(ranks.begin(), ranks.end(), [](const StepRecord& record) {
        return record.reached && record.ended && !record.error;
    });
}

std::vector<Check> Judge::judge_all() {
    std::vector<Check> out;
    for (std::size_t i = 0; i < run_.steps.size(); ++i) {
        for (const Expectation& expectation : run_.steps[i].expect) {
            out.push_back(judge(expectation, i));
        }
    }
    for (const Expectation& expectation : run_.finals) {
        out.push_back(judge(expectation, std::nullopt));
    }
    return out;
}

}  // namespace swaplab::harness::scenario
