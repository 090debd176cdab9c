#include "scenario/play/rank_story.hpp"

#include "scenario/play/step_error.hpp"

#include <utility>
#include <variant>

namespace swaplab::harness::scenario {

std::vector<std::string> saves_looked_at(const std::vector<Expectation>& expectations) {
    std::vector<std::string> names;
    for (const Expectation& expectation : expectations) {
        if (expectation.reference.kind == Reference::Kind::save) {
            names.push_back(expectation.reference.name);
        }
        if (!expectation.select.in.empty()) {
            names.push_back(expectation.select.in);
        }
    }
    return names;
}

bool has_lazy_state(const Run& run, const SetUp& set_up) {
    return set_up.kind == "adamw" || (set_up.kind == "case" && run.which.optimizer == "adamw");
}

RankStory::RankStory(const Stage& stage, const ProcessSpan& span, int rank, Saves saves,
                     std::unique_ptr<RecordJournal> journal, OnStep on_step)
    : stage_(stage),
      span_(span),
      rank_(rank),
      journal_(std::move(journal)),
      on_step_(std::move(on_step)),
      player_(stage, span.first, rank, span.seed, record_.saves) {
    record_.saves = std::move(saves);
}

void RankStory::play(sim::Communicator& communicator) {
    try {
        do_steps(communicator);
    } catch (...) {
        record_thrown(std::current_exception());
        throw;
    }
}

void RankStory::do_steps(sim::Communicator& communicator) {
    if (span_.first > 0) {
        begin(span_.first - 1);  // the restart
        StepRecord& record = record_.steps[record_.at];
        player_.build(communicator, &record);
        record.units = unit_values(stage_.run->steps[record_.at].after, rank_, {});
        record.history = History{span_.first, {}, true, 0};
        end_step();
        if (record.error) {
            return;
        }
        meet(communicator);
    } else {
        record_.at = 0;
        player_.build(communicator, nullptr);
        record_.start = player_.state();
        record_.execution_digest = player_.execution_digest();
        record_.choices = player_.choices();
        if (journal_) {
            journal_->write_start(record_);
        }
    }
    for (std::size_t i = span_.first; i < span_.last; ++i) {
        begin(i);
        const bool going = player_.play(i, record_.steps[i]);
        end_step();
        if (!going) {
            return;
        }
        meet(communicator);
    }
    record_.reached_end = true;
}

void RankStory::begin(std::size_t index) {
    const Step& step = stage_.run->steps[index];
    record_.at = index;
    if (journal_) {
        journal_->write_at(record_);
    }
    if (on_step_) {
        on_step_(step.label, step.after.timeout_ms);
    }
}

void RankStory::end_step() {
    record_.execution_digest = player_.execution_digest();
    record_.choices = player_.choices();
    if (!journal_) {
        return;
    }
    const Action& action = stage_.run->steps[record_.at].action;
    journal_->write_step(record_);
    const auto* save = std::get_if<SaveStep>(&action);
    const auto* edit = std::get_if<EditStep>(&action);
    const std::string name = save != nullptr ? save->to : edit != nullptr ? edit->in : "";
    const auto saved = record_.saves.find(name);
    if (saved != record_.saves.end() && saved->second.via != Via::live) {
        journal_->write_saved(record_, name);
    }
}

/// All ranks have done the step; rank 0 looks at directories while the others wait.
void RankStory::meet(sim::Communicator& communicator) {
    communicator.barrier();
    look_into(saves_looked_at(stage_.run->steps[record_.at].expect));
    communicator.barrier();
}

void RankStory::look_into(const std::vector<std::string>& names) {
    static const Saved failed_save;  // whatever it left on disk can be looked at
    const SetUp& set_up = stage_.run->steps[record_.at].after;
    LookedAt& out = record_.looked_at[record_.at];
    for (const std::string& name : names) {
        const auto found = record_.saves.find(name);
        const Saved& saved = found != record_.saves.end() ? found->second : failed_save;
        if (saved.via != Via::dcp) {
            out.dicts[name] = dict_state(saved.dict);
        } else if (rank_ == 0) {
            out.directories[name] = directory_content(*stage_.storage, name, saved, set_up,
                                                      has_lazy_state(*stage_.run, set_up));
        }
    }
    if (journal_ && !names.empty()) {
        journal_->write_looked_at(record_);
    }
}

/// What a rank throws outside a measured step (construction, a look into saves) ends the step that
/// it was at; construction before the first step is no step and shows at the first one.
void RankStory::record_thrown(const std::exception_ptr& thrown) {
    if (record_.at >= stage_.run->steps.size()) {
        return;
    }
    const bool building = span_.first == 0 && record_.steps.empty();
    const StepError error =
        step_error(thrown, rank_, building ? "construction" : stage_.run->steps[record_.at].verb);
    if (error.kind == sim::name_of(sim::ErrorKind::rank_lost)) {
        return;  // another rank ended the story: its record says how
    }
    StepRecord& record = record_.steps[record_.at];
    record.reached = true;
    record.ended = true;
    record.error = error;
    if (journal_) {
        journal_->write_step(record_);
    }
}

void RankStory::finish(bool killed) {
    const auto step = record_.steps.find(record_.at);
    const bool inside = step != record_.steps.end() && step->second.reached && !step->second.ended;
    if (inside && !killed) {
        step->second.findings = player_.new_findings();  // of the touch that ended the rank
    }
    for (auto& [name, saved] : record_.saves) {
        if (saved.via == Via::live) {
            saved.dict = {};
        }
    }
    auto findings = player_.tear_down();
    record_.trace_file = player_.trace_file();
    record_.choices = player_.choices();
    if (killed) {
        return;
    }
    record_.findings = std::move(findings);
    if (journal_) {
        if (inside) {
            journal_->write_step(record_);
        }
        journal_->write_end(record_);
    }
}

}  // namespace swaplab::harness::scenario
