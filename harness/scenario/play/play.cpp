#include "scenario/play/play.hpp"

#include "scenario/play/backend.hpp"
#include "scenario/play/limited_storage.hpp"
#include "scenario/play/rank_player.hpp"
#include "scenario/play/rooted_storage.hpp"
#include "scenario/play/step_error.hpp"
#include "scenario/play/unsynced_storage.hpp"

#include "swaplab/sim/digest.hpp"
#include "swaplab/sim/mutant.hpp"
#include "swaplab/sim/random.hpp"
#include "swaplab/sim/world.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <unistd.h>
#include <utility>

namespace swaplab::harness::scenario {
namespace {

/// As the watchdog of the command has it: a slow step may still end and be reported.
constexpr std::int64_t least_grace_ms = 2000;

/// A rank's process that is in one step for too long ends by SIGALRM.
void limit_this_process(const std::string& /*label*/, std::int64_t timeout_ms) {
    const std::int64_t all_ms = timeout_ms + std::max(timeout_ms, least_grace_ms);
    ::alarm(static_cast<unsigned>(all_ms / 1000 + 1));
}

bool ended_by_alarm(const StepError& lost) {
    const std::string alarm = fmt::format("by signal {} ", SIGALRM);
    return std::any_of(lost.fields.begin(), lost.fields.end(), [&](const sim::ErrorField& field) {
        return field.name == "reason" && field.value.starts_with(alarm);
    });
}

bool needs_files(const Run& run) {
    return run.start.posix || run.start.world_kind != sim::WorldKind::fiber ||
           std::any_of(run.steps.begin(), run.steps.end(), [](const Step& step) {
               return step.after.world_kind != sim::WorldKind::fiber;
           });
}

bool loses_power(const Run& run) {
    return std::any_of(run.steps.begin(), run.steps.end(), [](const Step& step) {
        const auto* restart = std::get_if<RestartStep>(&step.action);
        return restart != nullptr && restart->lose_unsynced;
    });
}

GlobalState assembled(const std::vector<RankState>& parts) {
    std::vector<const RankState*> pointers;
    for (const RankState& part : parts) {
        pointers.push_back(&part);
    }
    return assemble(pointers);
}

class StoryPlayer {
  public:
    StoryPlayer(const Run& run, const OnStep& on_step)
        : run_(run),
          on_step_(on_step),
          storage_(make_run_storage(run.start.posix, needs_files(run))),
          stage_{&run_, directory_of(run.file), &storage_->storage()} {
        if (loses_power(run)) {
            unsynced_ = std::make_unique<UnsyncedStorage>(*stage_.storage);
            stage_.storage = unsynced_.get();
        }
        if (run.start.disk_bytes) {
            limited_ = make_limited_storage(*stage_.storage, *run.start.disk_bytes);
            stage_.storage = limited_.get();
        }
        records_.steps.resize(run.steps.size());
        Saves given;
        for (const CheckpointSpec& checkpoint : run.start.checkpoints) {
            import_checkpoint(checkpoint, stage_.directory, *stage_.storage);
            given[checkpoint.name] = {};
        }
        saves_.push_back(std::move(given));
    }

    Records play() {
        std::size_t first = 0;
        bool going = true;
        while (going && first <= run_.steps.size()) {
            begin_disk(first);
            going = play_process({first, end_of_process(first), seed_of_process(first)});
            first = end_of_process(first) + 1;
        }
        records_.complete = going;
        tell_step("", 0);
        if (going) {
            look_into_at_end();
        }
        records_.digest = digest_.value();
        return std::move(records_);
    }

  private:
    static std::string directory_of(const std::string& file) {
        const std::string parent = std::filesystem::path(file).parent_path().string();
        return parent.empty() ? "." : parent;
    }

    /// A process that ends loses nothing: its system goes on. Power that is lost ends that, too.
    void begin_disk(std::size_t first) {
        if (unsynced_ == nullptr) {
            return;
        }
        const auto* restart =
            first == 0 ? nullptr : std::get_if<RestartStep>(&run_.steps[first - 1].action);
        if (restart != nullptr && restart->lose_unsynced) {
            unsynced_->lose_power();
        } else {
            unsynced_->settle();
        }
    }

    void tell_step(const std::string& label, std::int64_t timeout_ms) {
        if (on_step_) {
            on_step_(label, timeout_ms);
        }
    }

    /// Index of the restart that ends the process whose first step is `first`, or of the end.
    [[nodiscard]] std::size_t end_of_process(std::size_t first) const {
        while (first < run_.steps.size() &&
               !std::holds_alternative<RestartStep>(run_.steps[first].action)) {
            ++first;
        }
        return first;
    }

    [[nodiscard]] std::uint64_t seed_of_process(std::size_t first) const {
        const SetUp& set_up = set_up_of_process(run_, first);
        const bool apart = set_up.world_kind != sim::WorldKind::fiber;
        return sim::hash_mix(set_up.seed + (apart && SWAPLAB_MUTANT("story.seed_by_kind") ? 1 : 0),
                             first);
    }

    /// One process: from a restart or the start to the next restart or the end.
    bool play_process(const ProcessSpan& span) {
        ++processes_;
        const SetUp& set_up = set_up_of_process(run_, span.first);
        const auto ranks = static_cast<std::size_t>(set_up.world_size);
        const bool apart = set_up.world_kind == sim::WorldKind::process;
        stories_.clear();
        stories_.resize(ranks);
        sim::WorldOptions world{.world = set_up.world_kind,
                                .size = set_up.world_size,
                                .seed = span.seed,
                                .deadline = std::chrono::milliseconds(set_up.timeout_ms)};
        world.on_phase = [&](int rank, sim::RankPhase phase) {
            auto& story = stories_[static_cast<std::size_t>(rank)];
            if (phase == sim::RankPhase::called && story != nullptr) {
                story->pass_collective();
            } else if (phase == sim::RankPhase::reported && story != nullptr) {
                story->finish(false);  // a process leaves with all that it knows
            }
        };
        if (apart && span.first < run_.steps.size()) {
            tell_step(run_.steps[span.first].label, 0);
        }
        if (run_.backend != nullptr) {
            run_.backend->begin(set_up.world_size, device_options(set_up, span.seed));
        }
        const auto results = sim::run_ranks(world, [&](sim::Communicator& communicator) {
            const int rank = communicator.rank();
            auto& story = stories_[static_cast<std::size_t>(rank)];
            story = std::make_unique<RankStory>(
                stage_, span, rank, saves_of(rank),
                apart ? std::make_unique<RecordJournal>(journal_of(rank)) : nullptr,
                apart       ? OnStep(limit_this_process)
                : rank == 0 ? on_step_
                            : OnStep());
            story->play(communicator);
        });
        std::vector<RankRecord> records;
        for (std::size_t rank = 0; rank < ranks; ++rank) {
            records.push_back(apart ? read_record(static_cast<int>(rank), results[rank])
                                    : take_record(rank, results[rank]));
        }
        stories_.clear();
        return end_process(span, std::move(records), results);
    }

    [[nodiscard]] std::string journal_of(int rank) const {
        return storage_->file_beside(fmt::format("rank-{}", rank));
    }

    /// What `rank` knows of what was saved: directories as rank 0 does, its own part of dicts.
    [[nodiscard]] Saves saves_of(int rank) const {
        Saves out;
        const auto own = static_cast<std::size_t>(rank);
        for (const auto& [name, saved] : saves_.front()) {
            if (saved.via == Via::dcp) {
                out[name] = saved;
            } else if (own < saves_.size() && saves_[own].count(name) != 0) {
                out[name] = saves_[own].at(name);
            }
        }
        return out;
    }

    RankRecord take_record(std::size_t rank, const sim::RankResult& result) {
        if (stories_[rank] == nullptr) {
            std::rethrow_exception(result.error);  // it could not be built
        }
        stories_[rank]->finish(result.end == sim::RankResult::End::killed);
        return std::move(stories_[rank]->record());
    }

    /// From the file of a process that has ended, whatever it died of.
    RankRecord read_record(int rank, const sim::RankResult& result) {
        RankRecord record;
        record.saves = saves_of(rank);
        read_journal(journal_of(rank), record);
        std::filesystem::remove(journal_of(rank));
        if (record.steps.empty() && record.start.params.empty() && result.error) {
            std::rethrow_exception(result.error);  // it could not be built
        }
        return record;
    }

    bool end_process(const ProcessSpan& span, std::vector<RankRecord> records,
                     const std::vector<sim::RankResult>& results) {
        const bool killed = was_killed_as_planned(span, records, results);
        if (!killed) {
            record_deaths(records, results);
        }
        const bool complete =
            killed || std::all_of(records.begin(), records.end(),
                                  [](const RankRecord& record) { return record.reached_end; });
        saves_.resize(std::max(saves_.size(), records.size()));
        bring_looks_together(span, records);
        for (std::size_t rank = 0; rank < records.size(); ++rank) {
            RankRecord& record = records[rank];
            digest_.add(record.execution_digest);
            if (!record.trace_file.empty()) {
                records_.traces.push_back({processes_, static_cast<int>(rank),
                                           set_up_of_process(run_, span.first).profile,
                                           std::move(record.trace_file)});
            }
            if (set_up_of_process(run_, span.first).every_order) {
                records_.orders[{span.first, static_cast<int>(rank)}] = std::move(record.choices);
            }
            saves_[rank] = std::move(record.saves);
            if (span.first == 0) {
                records_.start.push_back(std::move(record.start));
            }
            for (std::size_t i = span.first - (span.first > 0 ? 1 : 0); i < span.last; ++i) {
                records_.steps[i].ranks.push_back(std::move(record.steps[i]));
            }
        }
        if (span.first > 0) {
            auto& findings = records_.steps[span.first - 1].ranks.front().findings;
            findings.insert(findings.begin(), left_behind_.begin(), left_behind_.end());
            left_behind_.clear();
        }
        if (complete && !killed) {  // what a dead process leaves is no mistake of anybody's
            keep_findings(span, records);
        }
        return complete;
    }

    /// The last step of this process has a kill, which happened, and all survivors got an error, as
    /// the step expects.
    [[nodiscard]] bool was_killed_as_planned(const ProcessSpan& span,
                                             const std::vector<RankRecord>& records,
                                             const std::vector<sim::RankResult>& results) const {
        const Step* step = span.last > span.first ? &run_.steps[span.last - 1] : nullptr;
        if (step == nullptr || !step->ends_a_rank() || !step->may_fail()) {
            return false;
        }
        const int victim = step->fault->rank;
        for (std::size_t rank = 0; rank < results.size(); ++rank) {
            const auto last = records[rank].steps.find(span.last - 1);
            const bool failed = last != records[rank].steps.end() && last->second.error;
            const bool as_planned = static_cast<int>(rank) == victim
                                        ? results[rank].end == sim::RankResult::End::killed
                                        : failed;
            if (!as_planned) {
                return false;
            }
        }
        return true;
    }

    /// A rank that died without a plan could not say so itself.
    void record_deaths(std::vector<RankRecord>& records,
                       const std::vector<sim::RankResult>& results) const {
        for (std::size_t rank = 0; rank < results.size(); ++rank) {
            if (results[rank].end != sim::RankResult::End::killed || run_.steps.empty()) {
                continue;
            }
            RankRecord& record = records[rank];
            StepRecord& step = record.steps[record.at];
            const StepError lost =
                step_error(results[rank].error, static_cast<int>(rank), run_.steps[record.at].verb);
            step.reached = true;
            step.too_slow = ended_by_alarm(lost);
            if (!step.too_slow) {
                step.error = lost;
            }
        }
    }

    /// What ranks saw of the same thing becomes one content.
    void bring_looks_together(const ProcessSpan& span, std::vector<RankRecord>& records) {
        for (std::size_t i = span.first - (span.first > 0 ? 1 : 0); i < span.last; ++i) {
            auto& out = records_.steps[i].saved;
            out.merge(records.front().looked_at[i].directories);
            std::map<std::string, std::vector<RankState>> parts;
            for (RankRecord& record : records) {
                for (auto& [name, part] : record.looked_at[i].dicts) {
                    parts[name].push_back(std::move(part));
                }
            }
            for (auto& [name, list] : parts) {
                add_parts(name, records.size(), list);
                out[name].state = assembled(list);
            }
        }
    }

    /// The parts of a dict that ranks from `first` on of a larger world had.
    void add_parts(const std::string& name, std::size_t first, std::vector<RankState>& out) const {
        for (std::size_t rank = first; rank < saves_.size(); ++rank) {
            const auto saved = saves_[rank].find(name);
            if (saved != saves_[rank].end() && saved->second.via != Via::dcp) {
                out.push_back(dict_state(saved->second.dict));
            }
        }
    }

    void look_into_at_end() {
        const SetUp& set_up = run_.steps.empty() ? run_.start : run_.steps.back().after;
        for (const std::string& name : saves_looked_at(run_.finals)) {
            const auto found = saves_.front().find(name);
            const Saved saved = found != saves_.front().end() ? found->second : Saved{};
            if (saved.via == Via::dcp) {
                records_.end_saved[name] = directory_content(*stage_.storage, name, saved, set_up,
                                                             has_lazy_state(run_, set_up));
            } else {
                std::vector<RankState> parts;
                add_parts(name, 0, parts);
                records_.end_saved[name].state = assembled(parts);
            }
        }
    }

    /// What a process leaves belongs to the restart that ends it.
    void keep_findings(const ProcessSpan& span, const std::vector<RankRecord>& records) {
        for (const RankRecord& record : records) {
            auto& to = span.last < run_.steps.size() ? left_behind_ : records_.end_findings;
            to.insert(to.end(), record.findings.begin(), record.findings.end());
        }
    }

    const Run& run_;
    const OnStep& on_step_;
    std::unique_ptr<RunStorage> storage_;
    Stage stage_;
    std::unique_ptr<UnsyncedStorage> unsynced_;  ///< where power is lost
    std::unique_ptr<Storage> limited_;           ///< where the disk has a size
    std::vector<Saves> saves_;                   ///< by rank
    Records records_;
    std::vector<std::unique_ptr<RankStory>> stories_;  ///< by rank, of the process that runs
    std::vector<sim::Finding> left_behind_;            ///< by the process before
    std::size_t processes_ = 0;                        ///< begun so far
    sim::RollingDigest digest_;
};

}  // namespace

const SetUp& set_up_of_process(const Run& run, std::size_t first) {
    return first == 0 ? run.start : run.steps[first - 1].after;
}

Records play(const Run& run, const OnStep& on_step) {
    return StoryPlayer(run, on_step).play();
}

Run twin_run(const Run& run, const History& history, const SetUp& present,
             const std::string& optimizer) {
    Run twin;
    twin.name = run.name;
    twin.file = run.file;
    twin.which = run.which;
    const auto here = [&](ParamSpec& param) {
        if (const ParamSpec* spec = present.find(param.name)) {
            param.placements = spec->placements;
        }
    };
    const auto move = [&](SetUp& set_up) {
        set_up.world_kind = sim::WorldKind::fiber;
        set_up.world_size = present.world_size;
        set_up.mesh = present.mesh;
        set_up.schedule = present.every_order ? sim::Schedule::fifo : present.schedule;
        set_up.every_order = false;
        set_up.capacity_bytes = present.capacity_bytes;
        set_up.allocator = present.allocator;
        set_up.pinned_policy = present.pinned_policy;
        set_up.pinned_quota_bytes = present.pinned_quota_bytes;
        set_up.kind = present.kind;
        set_up.checkpoints.clear();
        std::for_each(set_up.params.begin(), set_up.params.end(), here);
        if (!optimizer.empty()) {
            // Its moments need room on the device: the twin is for bits, not for figures.
            set_up.kind = optimizer;
            set_up.capacity_bytes = std::max(set_up.capacity_bytes, std::uint64_t{1} << 30U);
        }
    };
    twin.start = set_up_of_process(run, history.process);
    move(twin.start);
    for (const std::size_t index : history.steps) {
        Step step = run.steps[index];
        step.expect.clear();
        step.fault.reset();
        move(step.before);
        move(step.after);
        if (auto* added = std::get_if<AddGroupStep>(&step.action)) {
            std::for_each(added->params.begin(), added->params.end(), here);
        }
        twin.steps.push_back(std::move(step));
    }
    return twin;
}

}  // namespace swaplab::harness::scenario
