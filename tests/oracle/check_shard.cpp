#include "checks.hpp"
#include "hex.hpp"
#include "replay_shard.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

namespace swaplab::oracle {
namespace {

using harness::Checkpoint;
using harness::MetadataEntry;

std::string unequal(const std::string& name, bool expected, bool found) {
    return expected == found ? "" : fmt::format("{} expected {}, found {}", name, expected, found);
}

std::string unequal(const std::string& name, std::int64_t expected, std::int64_t found) {
    return expected == found ? "" : fmt::format("{} expected {}, found {}", name, expected, found);
}

/// One bool per rank.
template <class Predicate>
std::string per_rank(const std::string& name, const Value& expected, Predicate found) {
    for (std::size_t rank = 0; rank < items(expected).size(); ++rank) {
        const std::string problem = unequal(fmt::format("{} of rank {}", name, rank),
                                            flag(at(expected, rank)), found(rank));
        if (!problem.empty()) {
            return problem;
        }
    }
    return "";
}

/// One bool per rank and step.
template <class Predicate>
std::string per_step(const std::string& name, const Value& expected, Predicate found) {
    for (std::size_t rank = 0; rank < items(expected).size(); ++rank) {
        const Value& steps = at(expected, rank);
        for (std::size_t k = 0; k < items(steps).size(); ++k) {
            const std::string problem =
                unequal(fmt::format("{} of rank {}, step {}", name, rank, k), flag(at(steps, k)),
                        found(rank, k));
            if (!problem.empty()) {
                return problem;
            }
        }
    }
    return "";
}

std::string compare_steps(const std::map<std::string, float>& found, const Value& expected) {
    for (const auto& [name, step] : members(expected)) {
        const auto own = found.find(text(name));
        if (own == found.end() || static_cast<double>(own->second) != number(step)) {
            return "step of " + text(name);
        }
    }
    return "";
}

// --- the run before the save and its continuation ---

std::string compare_rank(const ShardCase& one, const SavedRun& saved, const Value& expected) {
    const auto rank = static_cast<std::size_t>(integer(at(expected, "rank")));
    for (const auto& [name, part] : members(at(expected, "local"))) {
        const Shape& global_shape = shape_of(one.model, text(name));
        const optim::Box box =
            optim::ShardSpec{global_shape, {one.model.world}, {optim::Placement::shard(0)}, {}}
                .box_of(static_cast<int>(rank))
                .value();
        if (box != optim::Box{shape(at(part, "offset")), shape(at(part, "size"))}) {
            return "local part of " + text(name) + " is " + optim::to_string(box);
        }
    }
    const Entry& found = saved.at_n.at(rank);
    std::string problem = far_apart(found.params, read_values(at(expected, "params_at_N")), one.n);
    problem = problem.empty()
                  ? far_apart(found.used, read_moments(at(expected, "moments_at_N")), one.n)
                  : problem;
    problem = problem.empty() ? compare_steps(found.steps, at(expected, "step")) : problem;
    const auto& after = items(at(expected, "uninterrupted"));
    for (std::size_t k = 0; k < after.size() && problem.empty(); ++k) {
        const Entry& entry = saved.uninterrupted.at(rank).at(k);
        problem = far_apart(entry.params, read_values(at(after[k], "p")), one.n + k + 1);
        if (problem.empty()) {
            problem =
                far_apart(entry.used, read_moments(at(after[k], "used_by_step")), one.n + k + 1);
        }
        problem = problem.empty() ? compare_steps(entry.steps, at(after[k], "step")) : problem;
    }
    return problem;
}

// --- the saved checkpoint ---

Floats read_floats(Checkpoint& checkpoint, const std::string& key) {
    const auto bytes = checkpoint.read_tensor(key);
    Floats values(bytes.size() / sizeof(float));
    std::copy(bytes.begin(), bytes.end(), std::as_writable_bytes(std::span(values)).begin());
    return values;
}

/// What of one moment is in the checkpoint.
struct Survival {
    std::set<std::int64_t> ranks;  ///< whose shard is all there is; empty when it is complete
    std::int64_t lost_elements = 0;
};

Survival survival_of(const ShardCase& one, const SavedRun& saved, Checkpoint& checkpoint,
                     const std::string& name, const std::string& moment) {
    Survival result;
    const std::string key = "optimizer.state." + name + "." + moment;
    const MetadataEntry* entry = checkpoint.metadata().find(key);
    const Shape& global_shape = shape_of(one.model, name);
    if (entry == nullptr || entry->tensor() == nullptr ||
        entry->tensor()->global_shape == global_shape) {
        return result;
    }
    const Floats stored = read_floats(checkpoint, key);
    for (int rank = 0; rank < one.model.world; ++rank) {
        const optim::Box box =
            optim::ShardSpec{global_shape, {one.model.world}, {optim::Placement::shard(0)}, {}}
                .box_of(rank)
                .value();
        const Entry& truth = saved.at_n.at(static_cast<std::size_t>(rank));
        if (box.sizes == entry->tensor()->global_shape &&
            same_floats(stored, truth.used.at(name).at(moment))) {
            result.ranks.insert(rank);
        } else {
            result.lost_elements += optim::numel(box.sizes);
        }
    }
    return result;
}

std::string compare_saved(const ShardCase& one, const SavedRun& saved, const Value& expected) {
    Checkpoint checkpoint(*saved.storage, "saved");
    std::int64_t lost = 0;
    std::int64_t elements = 0;
    for (const auto& [name, leaves] : saved.at_n.at(0).used) {
        for (const auto& [moment, values] : leaves) {
            const Survival survival = survival_of(one, saved, checkpoint, name, moment);
            lost += survival.lost_elements;
            elements += optim::numel(shape_of(one.model, name));
            std::set<std::int64_t> ranks;
            if (const Value* known = find(at(expected, "survivors"), name + "." + moment)) {
                for (const Value& rank : items(*known)) {
                    ranks.insert(integer(rank));
                }
            }
            if (ranks != survival.ranks) {
                return fmt::format("survivors of {}.{}: found {} ranks, first {}", name, moment,
                                   survival.ranks.size(),
                                   survival.ranks.empty() ? -1 : *survival.ranks.begin());
            }
        }
    }
    std::string problem =
        unequal("lost elements", integer(at(expected, "lost_elements_total")), lost);
    if (problem.empty()) {
        problem =
            unequal("moment elements", integer(at(expected, "moment_elements_total")), elements);
    }
    for (const auto& [name, bits] : members(at(expected, "saved_step"))) {
        const std::string found =
            hex_of(read_floats(checkpoint, "optimizer.state." + text(name) + ".step"));
        if (problem.empty() && found != text(bits)) {
            problem = fmt::format("saved step of {} expected {}, found {}", text(name), text(bits),
                                  found);
        }
    }
    return problem;
}

// --- loads ---

bool is_true(const Value& load, std::string_view key) {
    const Value* value = find(load, key);
    return value != nullptr && (!value->get_if<bool>() || flag(*value));
}

/// Why a load cannot be repeated on an accelerator with our classes, or nothing.
std::string unsupported_load(const ShardCase& one, const Value& load) {
    const std::string& name = text(at(load, "variant"));
    const auto variant = variant_named(name);
    if (!variant) {
        return "variant " + name;
    }
    const bool is_specimen = variant->what == Variant::Class::specimen;
    if (is_specimen && !flag(at(load, "device_copy"))) {
        return "device_copy false: the moments' device is the host";
    }
    const bool has_none_leaves = one.variant != "V2" || one.model.groups.at(0).options.amsgrad;
    if (is_specimen && !has_none_leaves) {
        return name + " needs the None leaves that V2 wrote, ours writes none";
    }
    if (is_specimen) {
        return "";
    }
    const Value& outcome = at(load, "dcp_load");
    if (!is_text(outcome) && optim::repr(outcome).find("Missing key") != std::string::npos) {
        return name + " needs None leaves, ours does not";
    }
    const Value* right = find(load, "moments_right_per_rank");
    const bool all_right =
        right != nullptr && std::all_of(items(*right).begin(), items(*right).end(), flag);
    if (is_text(outcome) && !all_right) {
        return "an error of " + name + " that ours does not have";
    }
    return "";
}

LoadSpec read_load(const Value& load) {
    LoadSpec spec;
    spec.variant = text(at(load, "variant"));
    spec.checks = is_true(load, "validate")               ? harness::Checks::full
                  : text(at(load, "planner")) == "xtuner" ? harness::Checks::none
                                                          : harness::Checks::torch;
    spec.nan_fill = is_true(load, "nan_fill");
    spec.other_hp = is_true(load, "other_hp");
    spec.second_load = is_true(load, "second_load");
    return spec;
}

/// "a.exp_avg": ... of the moments that differ.
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

class LoadJudge {
  public:
    LoadJudge(const ShardCase& one, const SavedRun& saved, const std::vector<LoadedRun>& found,
              const Value& expected)
        : one_(one), saved_(saved), found_(found), expected_(expected) {}

    std::string compare() {
        const bool is_ok = is_text(at(expected_, "dcp_load"));
        for (const LoadedRun& run : found_) {
            if (run.error.empty() != is_ok) {
                return is_ok ? "refused: " + run.error.substr(0, 100) : "was not refused";
            }
        }
        if (!is_ok) {
            return per_rank("live moments changed",
                            at(expected_, "live_moments_changed_by_failed_load"),
                            [&](std::size_t rank) { return found_.at(rank).moments_changed; });
        }
        if (find(expected_, "elements_still_nan") != nullptr) {
            return compare_unwritten();
        }
        std::string problem = compare_first();
        problem = problem.empty() ? compare_bits() : problem;
        const Value* second = find(expected_, "second_load");
        return problem.empty() && second != nullptr ? compare_second(*second) : problem;
    }

  private:
    bool is_right(std::size_t rank, const Entry& entry) const {
        return same_moments(entry.used, saved_.at_n.at(rank).used);
    }

    std::string compare_unwritten() const {
        for (std::size_t rank = 0; rank < found_.size(); ++rank) {
            const Moments& used = found_[rank].after.used;
            for (const auto& [key, count] :
                 members(at(at(expected_, "elements_still_nan"), rank))) {
                const std::size_t dot = text(key).rfind('.');
                const Floats& values =
                    used.at(text(key).substr(0, dot)).at(text(key).substr(dot + 1));
                const auto unwritten = std::count_if(values.begin(), values.end(),
                                                     [](float v) { return std::isnan(v); });
                if (unwritten != integer(count)) {
                    return fmt::format("rank {}: {} elements of {} never written, expected {}",
                                       rank, unwritten, text(key), integer(count));
                }
            }
            const std::string problem = far_apart(
                used, read_moments(at(at(expected_, "template_after_load"), rank)), one_.n);
            if (!problem.empty()) {
                return fmt::format("template of rank {}: {}", rank, problem);
            }
        }
        return "";
    }

    std::string compare_first() const {
        const auto right = [&](std::size_t rank) { return is_right(rank, found_.at(rank).after); };
        const auto step = [&](std::size_t rank) {
            return found_.at(rank).after.steps == saved_.at_n.at(rank).steps;
        };
        const auto same_params = [&](std::size_t rank, std::size_t k) {
            return same_values(found_.at(rank).trace.at(k).params,
                               saved_.uninterrupted.at(rank).at(k).params);
        };
        const auto writes_current = [&](std::size_t rank, std::size_t k) {
            const Entry& entry = found_.at(rank).trace.at(k);
            return same_moments(entry.shown, entry.used);
        };
        for (const std::string& problem :
             {per_rank("moments right", at(expected_, "moments_right_per_rank"), right),
              compare_wrong(), per_rank("step right", at(expected_, "step_right"), step),
              per_step("next params", at(expected_, "next_params_equal_uninterrupted"),
                       same_params),
              per_step("next save", at(expected_, "next_save_would_write_current_moments"),
                       writes_current),
              compare_live()}) {
            if (!problem.empty()) {
                return problem;
            }
        }
        return "";
    }

    std::string compare_wrong() const {
        for (const auto& [rank, keys] : members(at(expected_, "wrong"))) {
            const auto index = static_cast<std::size_t>(std::stoul(text(rank)));
            const auto names = texts(keys);
            if (wrong_moments(found_.at(index).after.used, saved_.at_n.at(index).used) !=
                std::set<std::string>(names.begin(), names.end())) {
                return "wrong moments of rank " + text(rank);
            }
        }
        return "";
    }

    std::string compare_live() const {
        const Value* live = find(expected_, "live_hp");
        if (live == nullptr) {
            return "";
        }
        const optim::AdamWOptions& found = found_.at(0).live;
        return found.lr == number(at(*live, "lr")) &&
                       found.weight_decay == number(at(*live, "weight_decay")) &&
                       found.beta1 == number(at(at(*live, "betas"), std::size_t{0})) &&
                       found.beta2 == number(at(at(*live, "betas"), std::size_t{1})) &&
                       found.amsgrad == flag(at(*live, "amsgrad"))
                   ? ""
                   : "live hyper-parameters";
    }

    std::string compare_bits() const {
        std::string problem;
        for (std::size_t rank = 0; rank < found_.size() && problem.empty(); ++rank) {
            if (const Value* used = find(expected_, "used_by_step_after_load")) {
                problem = far_apart(found_[rank].after.used, read_moments(at(*used, rank)), one_.n);
            }
            const Value* params = find(expected_, "params_after_steps");
            for (std::size_t k = 0;
                 params != nullptr && problem.empty() && k < items(at(*params, rank)).size(); ++k) {
                problem = far_apart(found_[rank].trace.at(k).params,
                                    read_values(at(at(*params, rank), k)), one_.n + k + 1);
            }
        }
        return problem;
    }

    std::string compare_second(const Value& second) const {
        for (const std::string& problem :
             {per_rank(
                  "second load: moments right", at(second, "moments_right_per_rank"),
                  [&](std::size_t rank) { return is_right(rank, found_.at(rank).second_after); }),
              per_rank("second load: step right", at(second, "step_right"),
                       [&](std::size_t rank) {
                           return found_.at(rank).second_after.steps == saved_.at_n.at(rank).steps;
                       }),
              per_rank("second load: next params", at(second, "next_params_equal_uninterrupted"),
                       [&](std::size_t rank) {
                           return same_values(found_.at(rank).second_step.params,
                                              saved_.uninterrupted.at(rank).at(0).params);
                       })}) {
            if (!problem.empty()) {
                return problem;
            }
        }
        std::string problem;
        for (std::size_t rank = 0; rank < found_.size() && problem.empty(); ++rank) {
            if (const Value* used = find(second, "used_by_step_after_load")) {
                problem = far_apart(found_[rank].second_after.used, read_moments(at(*used, rank)),
                                    one_.n + 2);
            }
            if (const Value* params = find(second, "params_after_one_step");
                params != nullptr && problem.empty()) {
                problem = far_apart(found_[rank].second_step.params, read_values(at(*params, rank)),
                                    one_.n + 3);
            }
        }
        return problem.empty() ? "" : "second load: " + problem;
    }

    const ShardCase& one_;
    const SavedRun& saved_;
    const std::vector<LoadedRun>& found_;
    const Value& expected_;
};

std::string describe(const Value& load) {
    std::string words = text(at(load, "variant")) + " " + text(at(load, "planner"));
    for (const char* key : {"validate", "nan_fill", "other_hp", "second_load"}) {
        words += is_true(load, key) ? std::string(" ") + key : "";
    }
    return words;
}

void check_case(const Value& file_case, Tally& tally) {
    const ShardCase one = read_shard_case(file_case);
    const auto& loads = items(at(file_case, "loads"));
    const auto& ranks = items(at(file_case, "ranks"));
    const auto rows = static_cast<std::int64_t>(2 + ranks.size() + loads.size());
    if (!variant_named(one.variant)) {
        tally.unsupported("variant " + one.variant, rows);
        return;
    }
    if (flag(at(file_case, "async"))) {
        tally.unsupported("async save", rows);
        return;
    }
    const SavedRun saved = save_run(one);
    for (const Value& rank : ranks) {
        tally.row(fmt::format("{}, rank {}", one.name, integer(at(rank, "rank"))),
                  compare_rank(one, saved, rank));
    }
    tally.row(one.name + ", sharded equals full AdamW",
              unequal("equal", integer(at(file_case, "sharded_vs_full_adamw_max_ulp")) == 0,
                      saved.equals_full_adamw));
    tally.row(one.name + ", saved", compare_saved(one, saved, file_case));
    for (const Value& load : loads) {
        const std::string why = unsupported_load(one, load);
        if (!why.empty()) {
            tally.unsupported(why);
            continue;
        }
        const auto found = load_run(one, saved, read_load(load), one.model.world);
        tally.row(one.name + ", load " + describe(load),
                  LoadJudge(one, saved, found, load).compare());
    }
}

/// A checkpoint of one world loaded by another.
void check_reshard(const Value& cases, const Value& row, Tally& tally) {
    const std::string& path = text(at(row, "dir"));
    const std::string name = path.substr(path.rfind('/') + 1);
    const auto found = std::find_if(items(cases).begin(), items(cases).end(),
                                    [&](const Value& c) { return text(at(c, "name")) == name; });
    const std::string& loader = text(at(row, "loader"));
    if (found == items(cases).end() || find(row, "error") != nullptr || !variant_named(loader)) {
        tally.unsupported("resharding of a case that is not in the file, or that fails");
        return;
    }
    const ShardCase one = read_shard_case(*found);
    const SavedRun saved = save_run(one);
    LoadSpec spec;
    spec.variant = loader;
    spec.checks =
        text(at(row, "planner")) == "xtuner" ? harness::Checks::none : harness::Checks::torch;
    const auto world = static_cast<int>(integer(at(row, "loaded_by_world")));
    ModelSpec model = one.model;
    model.world = world;
    const auto runs = load_run(one, saved, spec, world);
    std::string problem =
        per_rank("moments right", at(row, "moments_right_per_rank"), [&](std::size_t rank) {
            return runs.at(rank).error.empty() &&
                   same_moments(runs[rank].after.used,
                                cut(saved.full_moments, model, static_cast<int>(rank)));
        });
    problem = problem.empty() ? compare_steps(runs.at(0).after.steps, at(row, "step")) : problem;
    tally.row(fmt::format("{} into {} ranks, {}", name, world, text(at(row, "planner"))), problem);
}

}  // namespace

void check_shard(const Value& file, Tally& tally) {
    for (const Value& one : items(at(file, "cases"))) {
        check_case(one, tally);
    }
    if (const Value* rows = find(file, "reshard")) {
        for (const Value& row : items(*rows)) {
            check_reshard(at(file, "cases"), row, tally);
        }
    }
    if (const Value* rows = find(file, "content_comparisons")) {
        tally.unsupported("comparison of two directories of the file",
                          static_cast<std::int64_t>(items(*rows).size()));
    }
}

}  // namespace swaplab::oracle
