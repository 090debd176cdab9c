#include "compare.hpp"
#include "hex.hpp"
#include "judge_shard.hpp"

#include <cmath>

namespace swaplab::oracle {
namespace {

using Entries = std::vector<const Entry*>;  // one per rank

/// One bool per rank.
template <class Predicate>
std::string per_rank(const std::string& name, const Value& expected, std::size_t world,
                     Predicate found) {
    const auto& flags = items(expected, world);
    for (std::size_t rank = 0; rank < world; ++rank) {
        const std::string problem =
            unequal(fmt::format("{} of rank {}", name, rank), flag(flags[rank]), found(rank));
        if (!problem.empty()) {
            return problem;
        }
    }
    return "";
}

/// "a.exp_avg" of the moments that differ.
std::set<std::string> wrong_moments(const Moments& found, const Moments& truth) {
    std::set<std::string> wrong;
    for (const auto& [name, leaves] : truth) {
        for (const auto& [key, values] : leaves) {
            if (!same_floats(found.at(name).at(key), values)) {
                wrong.insert(name + "." + key);
            }
        }
    }
    return wrong;
}

/// Moments per rank; the file must state them where some are wrong.
std::string compare_moments(const Entries& found, const Value* expected, bool all_right) {
    if (expected == nullptr) {
        return all_right ? "" : "wrong moments that the file does not state";
    }
    const auto& ranks = items(*expected, found.size());
    for (std::size_t rank = 0; rank < found.size(); ++rank) {
        const std::string problem = moments_apart(found[rank]->used, read_moments(ranks[rank]));
        if (!problem.empty()) {
            return fmt::format("rank {}: {}", rank, problem);
        }
    }
    return "";
}

class Judge {
  public:
    Judge(const ShardCase& one, const SavedRun& saved, const std::vector<LoadedRun>& found,
          const Value& expected)
        : one_(one), saved_(saved), found_(found), expected_(expected), world_(found.size()) {}

    std::string compare() const {
        const Value* set = find(expected_, "set");
        const bool is_ok = is_text(at(expected_, "dcp_load")) && (set == nullptr || is_text(*set));
        for (const LoadedRun& run : found_) {
            if (run.error.empty() != is_ok) {
                return is_ok ? "refused: " + run.error.substr(0, 100) : "was not refused";
            }
        }
        const std::string problem = compare_aliases();
        if (!problem.empty()) {
            return problem;
        }
        if (!is_ok) {
            return per_rank("live moments changed",
                            at(expected_, "live_moments_changed_by_failed_load"), world_,
                            [&](std::size_t rank) { return found_[rank].moments_changed; });
        }
        if (find(expected_, "nan_fill") != nullptr) {
            return compare_unwritten();
        }
        return first_of({compare_first(), compare_options(), compare_params(), compare_second()});
    }

  private:
    [[nodiscard]] bool is_right(std::size_t rank, const Entry& entry) const {
        return same_moments(entry.used, saved_.at_n.at(rank).used);
    }

    [[nodiscard]] Entries loaded() const {
        Entries entries;
        for (const LoadedRun& run : found_) {
            entries.push_back(&run.after);
        }
        return entries;
    }

    [[nodiscard]] std::string compare_aliases() const {
        const Value* aliases = find(expected_, "template_aliases_live_moments");
        return aliases == nullptr
                   ? ""
                   : unequal("template_aliases_live_moments", flag(*aliases),
                             std::any_of(found_.begin(), found_.end(), [](const LoadedRun& run) {
                                 return run.template_aliases;
                             }));
    }

    [[nodiscard]] std::string compare_unwritten() const {
        const auto& counts = items(at(expected_, "elements_still_nan"), world_);
        for (std::size_t rank = 0; rank < world_; ++rank) {
            std::map<std::string, std::int64_t> unwritten;
            for (const auto& [name, leaves] : found_[rank].after.used) {
                for (const auto& [key, values] : leaves) {
                    unwritten[name + "." + key] = std::count_if(
                        values.begin(), values.end(), [](float v) { return std::isnan(v); });
                }
            }
            std::map<std::string, std::int64_t> theirs;
            for (const auto& [key, count] : members(counts[rank])) {
                theirs[text(key)] = integer(count);
            }
            if (unwritten != theirs) {
                return fmt::format("rank {}: other elements were never written", rank);
            }
        }
        return compare_moments(loaded(), &at(expected_, "template_after_load"), true);
    }

    [[nodiscard]] std::string compare_first() const {
        return first_of(
            {per_rank("moments right", at(expected_, "moments_right_per_rank"), world_,
                      [&](std::size_t rank) { return is_right(rank, found_[rank].after); }),
             compare_wrong(),
             per_rank("step right", at(expected_, "step_right"), world_,
                      [&](std::size_t rank) {
                          return found_[rank].after.steps == saved_.at_n.at(rank).steps;
                      }),
             per_step("next_params_equal_uninterrupted",
                      [&](std::size_t rank, std::size_t k) { return continues(rank, k); }),
             per_step("next_save_would_write_current_moments",
                      [&](std::size_t rank, std::size_t k) {
                          const Entry& entry = found_[rank].trace.at(k);
                          return same_moments(entry.shown, entry.used);
                      })});
    }

    /// Step `k` after the load leads to the parameters of the uninterrupted run.
    [[nodiscard]] bool continues(std::size_t rank, std::size_t k) const {
        return same_values(found_[rank].trace.at(k).params,
                           saved_.uninterrupted.at(rank).at(k).params);
    }

    /// One bool per rank and step.
    template <class Predicate>
    std::string per_step(const std::string& name, Predicate found) const {
        const auto& ranks = items(at(expected_, name), world_);
        for (std::size_t rank = 0; rank < world_; ++rank) {
            const std::string problem =
                per_rank(fmt::format("{} of rank {}, as step", name, rank), ranks[rank],
                         found_[rank].trace.size(), [&](std::size_t k) { return found(rank, k); });
            if (!problem.empty()) {
                return problem;
            }
        }
        return "";
    }

    [[nodiscard]] std::string compare_wrong() const {
        std::map<std::string, std::set<std::string>> wrong;
        for (std::size_t rank = 0; rank < world_; ++rank) {
            if (!is_right(rank, found_[rank].after)) {
                wrong[std::to_string(rank)] =
                    wrong_moments(found_[rank].after.used, saved_.at_n.at(rank).used);
            }
        }
        std::map<std::string, std::set<std::string>> theirs;
        for (const auto& [rank, keys] : members(at(expected_, "wrong"))) {
            const auto names = texts(keys);
            theirs[text(rank)] = {names.begin(), names.end()};
        }
        return wrong == theirs ? "" : "other moments are wrong";
    }

    [[nodiscard]] std::string compare_options() const {
        const Entry& last = found_.at(0).trace.back();
        const auto compare = [&](const char* name, const optim::AdamWOptions& own) {
            const Value* stated = find(expected_, name);
            if (stated == nullptr) {
                return std::string();
            }
            require_keys(*stated, {"lr", "betas", "weight_decay", "amsgrad"});
            return read_options(*stated, own) == own ? "" : std::string(name) + " is another one";
        };
        return first_of({compare("live_hp", last.live), compare("used_hp", last.used_options)});
    }

    [[nodiscard]] std::string compare_params() const {
        const Entries after = loaded();
        bool all_right = true;
        bool all_continue = true;
        for (std::size_t rank = 0; rank < world_; ++rank) {
            all_right = all_right && is_right(rank, *after[rank]);
            for (std::size_t k = 0; k < found_[rank].trace.size(); ++k) {
                all_continue = all_continue && continues(rank, k);
            }
        }
        const Value* params = find(expected_, "params_after_steps");
        if (params == nullptr && !all_continue) {
            return "other parameters that the file does not state";
        }
        std::string problem =
            compare_moments(after, find(expected_, "used_by_step_after_load"), all_right);
        for (std::size_t rank = 0; params != nullptr && rank < world_; ++rank) {
            const auto& trace = found_[rank].trace;
            const auto& steps = items(items(*params, world_)[rank], trace.size());
            for (std::size_t k = 0; k < trace.size() && problem.empty(); ++k) {
                problem = params_apart(trace[k].params, read_values(steps[k]));
            }
        }
        return problem;
    }

    [[nodiscard]] std::string compare_second() const {
        const Value* second = find(expected_, "second_load");
        if (second == nullptr) {
            return "";
        }
        require_keys(*second,
                     {"moments_right_per_rank", "step_right", "next_params_equal_uninterrupted"},
                     {"used_by_step_after_load", "params_after_one_step"});
        Entries after;
        bool all_right = true;
        for (std::size_t rank = 0; rank < world_; ++rank) {
            after.push_back(&found_[rank].second_after);
            all_right = all_right && is_right(rank, *after.back());
        }
        const std::string problem =
            first_of({per_rank("moments right", at(*second, "moments_right_per_rank"), world_,
                               [&](std::size_t rank) { return is_right(rank, *after[rank]); }),
                      per_rank("step right", at(*second, "step_right"), world_,
                               [&](std::size_t rank) {
                                   return after[rank]->steps == saved_.at_n.at(rank).steps;
                               }),
                      compare_second_step(*second),
                      compare_moments(after, find(*second, "used_by_step_after_load"), all_right)});
        return problem.empty() ? "" : "second load: " + problem;
    }

    [[nodiscard]] std::string compare_second_step(const Value& second) const {
        const auto right = [&](std::size_t rank) {
            return same_values(found_[rank].second_step.params,
                               saved_.uninterrupted.at(rank).at(0).params);
        };
        std::string problem =
            per_rank("next params", at(second, "next_params_equal_uninterrupted"), world_, right);
        const Value* params = find(second, "params_after_one_step");
        for (std::size_t rank = 0; rank < world_ && problem.empty(); ++rank) {
            if (params == nullptr) {
                problem = right(rank) ? "" : "other parameters that the file does not state";
            } else {
                problem = params_apart(found_[rank].second_step.params,
                                       read_values(items(*params, world_)[rank]));
            }
        }
        return problem;
    }

    const ShardCase& one_;
    const SavedRun& saved_;
    const std::vector<LoadedRun>& found_;
    const Value& expected_;
    std::size_t world_;
};

}  // namespace

std::string compare_load(const ShardCase& one, const SavedRun& saved,
                         const std::vector<LoadedRun>& found, const Value& expected) {
    require_keys(
        expected, {"variant", "planner", "device_copy", "dcp_load"},
        {"validate", "nan_fill", "other_hp", "second_load", "set", "template_aliases_live_moments",
         "live_moments_changed_by_failed_load", "elements_still_nan", "template_after_load",
         "moments_right_per_rank", "wrong", "step_right", "next_params_equal_uninterrupted",
         "next_save_would_write_current_moments", "live_hp", "used_hp", "used_by_step_after_load",
         "params_after_steps"});
    return Judge(one, saved, found, expected).compare();
}

}  // namespace swaplab::oracle
