#include "scenario/play.hpp"

#include "scenario/rank_player.hpp"
#include "scenario/rooted_storage.hpp"

#include "swaplab/sim/digest.hpp"
#include "swaplab/sim/random.hpp"
#include "swaplab/sim/world.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <unistd.h>

namespace swaplab::harness::scenario {
namespace {

using Players = std::vector<std::unique_ptr<RankPlayer>>;

/// Names of saves that expectations look into.
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

class StoryPlayer {
  public:
    StoryPlayer(const Run& run, const OnStep& on_step)
        : run_(run),
          on_step_(on_step),
          storage_(make_run_storage(run.start.posix)),
          saves_(storage_->storage(), directory_of(run.file)) {
        stage_ = {&run_,     directory_of(run.file), &storage_->storage(), &saves_,
                  &records_, &gradient_files_};
        records_.steps.resize(run.steps.size());
        for (const CheckpointSpec& checkpoint : run.start.checkpoints) {
            saves_.import(checkpoint);
        }
    }

    Records play() {
        std::size_t first = 0;
        bool going = true;
        while (going && first <= run_.steps.size()) {
            going = play_process(first);
            first = end_of_process(first) + 1;
        }
        records_.complete = going;
        if (on_step_) {
            on_step_("", 0);
        }
        if (going) {
            look_into(saves_looked_at(run_.finals),
                      run_.steps.empty() ? run_.start : run_.steps.back().after,
                      records_.end_saved);
        }
        records_.digest = digest_.value();
        return std::move(records_);
    }

  private:
    static std::string directory_of(const std::string& file) {
        const std::string parent = std::filesystem::path(file).parent_path().string();
        return parent.empty() ? "." : parent;
    }

    [[nodiscard]] bool is_restart(std::size_t index) const {
        return std::holds_alternative<RestartStep>(run_.steps[index].action);
    }

    /// Index of the restart that ends the process whose first step is `first`, or of the end.
    [[nodiscard]] std::size_t end_of_process(std::size_t first) const {
        while (first < run_.steps.size() && !is_restart(first)) {
            ++first;
        }
        return first;
    }

    /// One process: from a restart (the step before `first`) or the start to the next restart.
    bool play_process(std::size_t first) {
        const SetUp& set_up = first == 0 ? run_.start : run_.steps[first - 1].after;
        const std::size_t last = end_of_process(first);
        const auto ranks = static_cast<std::size_t>(set_up.world_size);
        const std::uint64_t seed = sim::hash_mix(set_up.seed, first);
        StepRecords* restart = first == 0 ? nullptr : &records_.steps[first - 1];
        if (restart != nullptr) {
            restart->ranks.resize(ranks);
        }
        for (std::size_t i = first; i < last; ++i) {
            records_.steps[i].ranks.resize(ranks);
        }
        Players players;
        for (std::size_t rank = 0; rank < ranks; ++rank) {
            players.push_back(
                std::make_unique<RankPlayer>(stage_, set_up, static_cast<int>(rank), seed));
        }
        std::vector<char> reached_end(ranks, 0);
        const auto results =
            sim::run_ranks({set_up.world_size, seed}, [&](sim::Communicator& communicator) {
                const auto rank = static_cast<std::size_t>(communicator.rank());
                reached_end[rank] =
                    play_rank(*players[rank], communicator, restart, first, last) ? 1 : 0;
            });
        return end_process(
            players, results, first, last,
            std::all_of(reached_end.begin(), reached_end.end(), [](char end) { return end != 0; }));
    }

    bool play_rank(RankPlayer& player, sim::Communicator& communicator, StepRecords* restart,
                   std::size_t first, std::size_t last) {
        const auto rank = static_cast<std::size_t>(communicator.rank());
        try {
            StepRecord* record = restart != nullptr ? &restart->ranks[rank] : nullptr;
            announce(rank, restart != nullptr ? first - 1 : first);
            player.build(communicator, record);
            if (record != nullptr) {
                record->units =
                    unit_values(run_.steps[first - 1].after, static_cast<int>(rank), {});
                record->history = std::make_shared<const History>(
                    History{run_.steps[first - 1].after, {}, true, 0});
                if (record->error) {
                    return false;
                }
                meet(communicator, first - 1);
            } else {
                records_.start.resize(static_cast<std::size_t>(communicator.size()));
                records_.start[rank] = player.state();
            }
            for (std::size_t i = first; i < last; ++i) {
                announce(rank, i);
                if (!player.play(i)) {
                    return false;
                }
                meet(communicator, i);
            }
            return true;
        } catch (const sim::RankLost&) {
            return false;  // another rank ended the story: its record says how
        } catch (const sim::Error& error) {
            fail_construction(rank, first, error);
            return false;
        }
    }

    void announce(std::size_t rank, std::size_t index) {
        if (rank == 0 && on_step_ && index < run_.steps.size()) {
            on_step_(run_.steps[index].label, run_.steps[index].after.timeout_ms);
        }
    }

    /// Construction before the first step is no step: its failure shows at the first one.
    void fail_construction(std::size_t rank, std::size_t first, const sim::Error& error) {
        if (first < run_.steps.size()) {
            StepRecord& record = records_.steps[first].ranks[rank];
            record.reached = true;
            record.ended = true;
            record.error =
                StepError{std::string(sim::name_of(error.kind())), error.fields(), error.message()};
        }
    }

    /// All ranks have done step `index`; rank 0 looks at what was saved while the others wait.
    void meet(sim::Communicator& communicator, std::size_t index) {
        communicator.barrier();
        if (communicator.rank() == 0) {
            look_into(saves_looked_at(run_.steps[index].expect), run_.steps[index].after,
                      records_.steps[index].saved);
        }
        communicator.barrier();
    }

    void look_into(const std::vector<std::string>& names, const SetUp& set_up,
                   std::map<std::string, SavedContent>& out) {
        const bool lazy =
            set_up.kind == "adamw" || (set_up.kind == "case" && run_.which.optimizer == "adamw");
        for (const std::string& name : names) {
            out[name] = saves_.content(name, set_up, lazy);
        }
    }

    bool end_process(Players& players, const std::vector<sim::RankResult>& results,
                     std::size_t first, std::size_t last, bool complete) {
        saves_.drop_live();
        for (std::size_t rank = 0; rank < players.size(); ++rank) {
            RankPlayer& player = *players[rank];
            if (results[rank].end == sim::RankResult::End::trapped) {
                record_trap(player, rank, first, last);
            }
            auto findings = player.tear_down();
            digest_.add(player.execution_digest());
            if (!complete) {
                continue;
            }
            auto& to = last < run_.steps.size() ? leaks_of(last) : records_.end_findings;
            to.insert(to.end(), findings.begin(), findings.end());
        }
        return complete;
    }

    /// What the old process left belongs to the restart that ends it.
    std::vector<sim::Finding>& leaks_of(std::size_t restart) {
        auto& ranks = records_.steps[restart].ranks;
        if (ranks.empty()) {
            ranks.resize(static_cast<std::size_t>(run_.steps[restart].after.world_size));
        }
        return ranks.front().findings;
    }

    void record_trap(RankPlayer& player, std::size_t rank, std::size_t first, std::size_t last) {
        for (std::size_t i = first; i < last; ++i) {
            StepRecord& record = records_.steps[i].ranks[rank];
            if (record.reached && !record.ended) {
                record.findings = player.new_findings();
                return;
            }
        }
    }

    const Run& run_;
    const OnStep& on_step_;
    std::unique_ptr<RunStorage> storage_;
    Saves saves_;
    Records records_;
    Stage stage_;
    std::map<std::string, GradientFile> gradient_files_;
    sim::RollingDigest digest_;
};

}  // namespace

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
        set_up.world_size = present.world_size;
        set_up.mesh = present.mesh;
        set_up.schedule = present.schedule;
        set_up.capacity_bytes = present.capacity_bytes;
        set_up.kind = present.kind;
        set_up.checkpoints.clear();
        std::for_each(set_up.params.begin(), set_up.params.end(), here);
        if (!optimizer.empty()) {
            // Its moments need room on the device: the twin is for bits, not for figures.
            set_up.kind = optimizer;
            set_up.capacity_bytes = std::max(set_up.capacity_bytes, std::uint64_t{1} << 30U);
        }
    };
    twin.start = history.base;
    move(twin.start);
    for (Step step : history.steps) {
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
