#include "scenario/judge/each_pass.hpp"

#include "swaplab/sim/mutant.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <string_view>
#include <utility>

namespace swaplab::harness::scenario {
namespace {

constexpr std::uint64_t most_passes = 1000;

bool failed(const Check& check) {
    return check.reached && !check.ok;
}

std::uint64_t count_passes(Run run, std::size_t index, const OnStep& on_step) {
    FaultSpec& fault = *run.steps[index].fault;
    fault.nth = std::numeric_limits<std::int64_t>::max();
    const Records records = play(run, on_step);
    const auto& ranks = records.steps[index].ranks;
    const auto rank = static_cast<std::size_t>(fault.rank);
    return rank < ranks.size() ? ranks[rank].fault_passes : 0;
}

}  // namespace

std::vector<Run> runs_of_each_pass(const Run& run, const OnStep& on_step) {
    const auto step = std::find_if(run.steps.begin(), run.steps.end(),
                                   [](const Step& each) { return each.fault && each.fault->each; });
    if (step == run.steps.end()) {
        return {run};
    }
    const auto index = static_cast<std::size_t>(step - run.steps.begin());
    const std::uint64_t passes = count_passes(run, index, on_step);
    if (passes > most_passes) {
        throw std::length_error(
            fmt::format("step {} passes {} {} times: nth = \"each\" is for at most {}, narrow it "
                        "by over or file",
                        step->label, step->fault->at, passes, most_passes));
    }
    std::vector<Run> out;
    const std::uint64_t last = SWAPLAB_MUTANT("play.each_once") ? 1 : passes;
    for (std::uint64_t nth = 1; nth <= std::max<std::uint64_t>(last, 1); ++nth) {
        out.push_back(run);
        out.back().steps[index].fault->nth = static_cast<std::int64_t>(nth);
    }
    return out;
}

void add_telling(std::vector<Check>& all, std::vector<Check> found, const Telling& telling) {
    const auto& [what, nth, count] = telling;
    for (Check& check : found) {
        const bool of_fault = check.subject == Subject::error || check.subject == Subject::refused;
        const bool orders = what == std::string_view("order") && !check.by_default;
        if (count > 1 && failed(check)) {
            check.summary = fmt::format("{} {} of {}: {}", what, nth, count, check.summary);
        } else if (count > 1 && orders) {
            check.summary += fmt::format(", in each of {} orders", count);
        } else if (count > 1 && of_fault) {
            check.summary += fmt::format(", at each of {} passes", count);
        }
    }
    if (nth == 1) {
        all = std::move(found);
        return;
    }
    for (std::size_t i = 0; i < all.size(); ++i) {
        const bool is_worse = failed(found[i]) || (!found[i].reached && all[i].ok);
        if (!failed(all[i]) && is_worse) {
            all[i] = std::move(found[i]);
        }
    }
}

}  // namespace swaplab::harness::scenario
