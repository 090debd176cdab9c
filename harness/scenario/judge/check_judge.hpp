#pragma once

/// The verdict on one expectation.

#include "scenario/judge/judge.hpp"

#include <optional>
#include <string>
#include <vector>

namespace swaplab::harness::scenario {

/// Up to the first line break.
[[nodiscard]] std::string first_line(const std::string& text);

/// Fills a Check whose expectation was reached.
class CheckJudge {
  public:
    CheckJudge(Judge& all, const Expectation& expectation, std::optional<std::size_t> index,
               Check& check);

    void judge();

  private:
    void runs();
    void findings();
    void failure();
    void state();
    void state_value();
    void figure();
    void buffers();
    void trace();
    void cover();
    void files();

    void fail(const std::string& summary);
    void pass(const std::string& summary);
    void conclude_states(const std::vector<TensorDifference>& differences, const char* view);
    /// `expected` is empty where the expected amount is no whole number: that fails.
    void conclude_figure(int rank, std::int64_t measured, std::optional<std::int64_t> expected,
                         const std::string& what);
    void describe_memory(int rank, std::int64_t measured, std::int64_t bound);
    [[nodiscard]] std::string fault_note() const;
    [[nodiscard]] std::optional<std::string> fails_wrongly(const StepRecord& record, int rank,
                                                           bool expected_here) const;
    [[nodiscard]] const std::vector<StepRecord>& ranks() const;
    [[nodiscard]] std::vector<int> chosen_ranks() const;
    [[nodiscard]] const GlobalState* found_state();
    [[nodiscard]] const GlobalState* reference_state();
    [[nodiscard]] const std::vector<StepRecord>* reference_ranks();
    [[nodiscard]] const SavedContent* saved(const std::string& name);
    [[nodiscard]] std::int64_t measure(const StepRecord& record) const;
    /// Of memory, in one round of a `repeat` after the first.
    [[nodiscard]] std::int64_t largest_growth(std::size_t rank) const;
    /// What the figures are of: the step on `rank`, or all steps after the label of `since`.
    [[nodiscard]] StepRecord figures_on(std::size_t rank) const;
    [[nodiscard]] std::string reference_text() const;

    Judge& all_;
    const Expectation& expectation_;
    std::optional<std::size_t> index_;
    Check& check_;
};

}  // namespace swaplab::harness::scenario
