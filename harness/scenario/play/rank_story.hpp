#pragma once

/// What one rank does from the beginning of a process to its end, and the record of it.

#include "scenario/play/rank_player.hpp"
#include "scenario/play/rank_record.hpp"

#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace swaplab::harness::scenario {

/// One process of a story: its first step, and the restart or end that comes after its last one.
struct ProcessSpan {
    std::size_t first = 0;
    std::size_t last = 0;
    std::uint64_t seed = 0;
};

/// Told when a step begins, with its label and time limit, and at the end with "" and 0: for
/// progress and watchdogs. A limit of 0: nobody need watch the step.
using OnStep = std::function<void(const std::string& label, std::int64_t timeout_ms)>;

/// Names of saves that expectations look into.
[[nodiscard]] std::vector<std::string> saves_looked_at(
    const std::vector<Expectation>& expectations);
/// Whether the optimizer of this run may have no state before its first step.
[[nodiscard]] bool has_lazy_state(const Run& run, const SetUp& set_up);

/// Made by the rank itself, so that a process has a device of its own. Lives outside the rank's
/// fiber. Threads: one at a time.
class RankStory {
  public:
    /// `journal`: null where the record need not leave the process.
    RankStory(const Stage& stage, const ProcessSpan& span, int rank, Saves saves,
              std::unique_ptr<RecordJournal> journal, OnStep on_step);

    /// All steps of the process. Throws what ended it early, after it was recorded.
    void play(sim::Communicator& communicator);
    /// Called when the rank begins a collective.
    void pass_collective() { player_.pass_collective(); }
    /// After play(), however that ended: destroys everything, and completes the record unless the
    /// rank was killed: then nobody could have told more.
    void finish(bool killed);

    [[nodiscard]] RankRecord& record() noexcept { return record_; }

  private:
    void do_steps(sim::Communicator& communicator);
    void begin(std::size_t index);
    void end_step();
    void meet(sim::Communicator& communicator);
    void look_into(const std::vector<std::string>& names);
    void record_thrown(const std::exception_ptr& thrown);

    const Stage& stage_;
    ProcessSpan span_;
    int rank_;
    RankRecord record_;
    std::unique_ptr<RecordJournal> journal_;
    OnStep on_step_;
    RankPlayer player_;
};

}  // namespace swaplab::harness::scenario
