#pragma once

/// Expectations against what a run saw.

#include "scenario/judge/compare.hpp"
#include "scenario/play/record.hpp"

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace swaplab::harness::scenario {

struct TagBytes {
    std::string tag;
    int rank = 0;
    std::int64_t bytes = 0;
};

/// One expectation, judged.
struct Check {
    std::string path;
    Position at;
    std::string text;  ///< as the file says it
    Subject subject = Subject::runs;
    bool by_default = false;
    bool reached = false;  ///< the story got there
    bool ok = false;
    std::string summary;               ///< "device rise 0 B (bound 0 B)": with the number
    std::vector<std::string> details;  ///< further lines: "also     a 6 of 6 elements"
    std::optional<std::int64_t> measured;
    std::optional<std::int64_t> bound;
    std::string unit;        ///< "B", "elements", ""
    std::string error_kind;  ///< of the error that was found
    std::vector<TagBytes> holders;
    std::optional<FirstDifference> first;
    std::int64_t training_step = 0;
    UnitValues units;  ///< of the rank that `measured` belongs to
};

/// What a reference run ended with.
struct Twin {
    std::string problem;  ///< it did not reach its end
    std::vector<RankState> states;
    std::vector<StepRecord> last_step;  ///< empty when it has no steps
};

/// Plays a twin; the runner caches by step.
using TwinPlayer = std::function<Twin(const History&, const SetUp& present, bool adamw)>;

/// Judges one run. The run and its records must outlive it.
class Judge {
  public:
    Judge(const Run& run, const Records& records, TwinPlayer play_twin);

    /// Every expectation in order, those that were not reached too.
    [[nodiscard]] std::vector<Check> judge_all();
    /// One expectation of step `index`; of the end when empty.
    [[nodiscard]] Check judge(const Expectation& expectation, std::optional<std::size_t> index);

  private:
    friend class CheckJudge;
    [[nodiscard]] bool ran_everywhere(std::size_t index) const;
    [[nodiscard]] const Twin& twin(std::size_t index, bool adamw);
    [[nodiscard]] const GlobalState& state_after(std::size_t index);
    [[nodiscard]] const GlobalState& state_before(std::size_t index);
    [[nodiscard]] const GlobalState& state_at_start();
    [[nodiscard]] const GlobalState& twin_state(std::size_t index, bool adamw);

    const Run& run_;
    const Records& records_;
    TwinPlayer play_twin_;
    std::map<std::pair<std::size_t, bool>, Twin> twins_;
    std::map<std::string, GlobalState> states_;  ///< assembled, by what they are of
};

/// The expectation that must fail whenever `expectation` holds: other relation, figure one off.
[[nodiscard]] Expectation opposite(const Expectation& expectation);

}  // namespace swaplab::harness::scenario
