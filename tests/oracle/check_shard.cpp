#include "checks.hpp"
#include "compare.hpp"
#include "judge_shard.hpp"

namespace swaplab::oracle {
namespace {

bool is_true(const Value& load, std::string_view key) {
    const Value* value = find(load, key);
    return value != nullptr && (!value->get_if<bool>() || flag(*value));
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

/// Why a load cannot be repeated on an accelerator with our classes, or nothing. Only what was
/// done decides, never what came out.
std::string unsupported_load(const ShardCase& one, const SavedRun& saved, const LoadSpec& load,
                             const std::string& planner, bool device_copy) {
    const auto variant = variant_named(load.variant);
    if (!variant) {
        return "variant " + load.variant;
    }
    if (planner != "default" && planner != "xtuner") {
        return "planner " + planner;
    }
    const bool amsgrad = one.model.groups.at(0).options.amsgrad;
    if (variant->what == Variant::Class::specimen) {
        if (!device_copy) {
            return "device_copy false: the moments' device is the host";
        }
        return one.variant == "V2" && !amsgrad
                   ? load.variant + " needs the None leaves that V2 wrote, ours writes none"
                   : "";
    }
    if (load.variant == "V2" && one.variant == "AdamW" && !amsgrad) {
        return "V2 needs None leaves, ours does not";
    }
    if (load.checks == harness::Checks::none && !survivors_of(one, saved).empty()) {
        return load.variant + " takes a part of the lost moments without a word, ours refuses";
    }
    return "";
}

std::string describe(const Value& load) {
    std::string words = text(at(load, "variant")) + " " + text(at(load, "planner"));
    for (const char* key : {"validate", "nan_fill", "other_hp", "second_load"}) {
        words += is_true(load, key) ? std::string(" ") + key : "";
    }
    return words;
}

/// Why the whole case is not covered, or nothing.
std::string unsupported_case(const Value& one) {
    const std::string& variant = text(at(one, "variant"));
    const std::string& planner = text(at(one, "save_planner"));
    if (!variant_named(variant)) {
        return "variant " + variant;
    }
    if (flag(at(one, "async"))) {
        return "async save";
    }
    if (planner != "default" && planner != "xtuner") {
        return "save planner " + planner;
    }
    return is_text(at(one, "save")) ? "" : "a save that fails";
}

void check_loads(const ShardCase& one, const SavedRun& saved, const Value& loads, Tally& tally) {
    for (const Value& load : items(loads)) {
        const LoadSpec spec = read_load(load);
        const std::string why = unsupported_load(one, saved, spec, text(at(load, "planner")),
                                                 flag(at(load, "device_copy")));
        if (!why.empty()) {
            tally.unsupported(why);
            continue;
        }
        tally.judge(one.name + ", load " + describe(load), [&] {
            return compare_load(one, saved, load_run(one, saved, spec, one.model.world), load);
        });
    }
}

void check_case(const Value& file_case, Tally& tally) {
    require_keys(file_case,
                 {"name", "world", "variant", "set", "shapes", "groups", "betas", "amsgrad", "N",
                  "with_model", "async", "save_planner", "fully_shard", "save", "data", "ranks",
                  "sharded_vs_full_adamw_max_ulp", "repeat_run_is_bit_equal", "loads"},
                 {"survivors", "lost_elements_total", "moment_elements_total", "saved_step"});
    const auto world = static_cast<std::size_t>(integer(at(file_case, "world")));
    const auto& ranks = items(at(file_case, "ranks"), world);
    const Value& loads = at(file_case, "loads");
    const std::string why = unsupported_case(file_case);
    if (!why.empty()) {
        tally.unsupported(why, static_cast<std::int64_t>(3 + ranks.size() + items(loads).size()));
        return;
    }
    const ShardCase one = read_shard_case(file_case);
    const SavedRun saved = save_run(one);
    for (std::size_t rank = 0; rank < world; ++rank) {
        tally.judge(fmt::format("{}, rank {}", one.name, rank),
                    [&] { return compare_rank(one, saved, rank, ranks[rank]); });
    }
    tally.judge(one.name + ", sharded equals full AdamW", [&] {
        return unequal("equal", integer(at(file_case, "sharded_vs_full_adamw_max_ulp")) == 0,
                       saved.equals_full_adamw);
    });
    tally.judge(one.name + ", repeated run", [&] {
        return unequal("equal", flag(at(file_case, "repeat_run_is_bit_equal")),
                       same_run(saved, save_run(one)));
    });
    tally.judge(one.name + ", saved", [&] { return compare_saved(one, saved, file_case); });
    check_loads(one, saved, loads, tally);
}

/// The case of that name, or nullptr.
const Value* case_named(const Value& cases, const std::string& name) {
    for (const Value& one : items(cases)) {
        if (text(at(one, "name")) == name) {
            return &one;
        }
    }
    return nullptr;
}

std::string compare_reshard(const ShardCase& one, const SavedRun& saved, const LoadSpec& spec,
                            const Value& row) {
    const auto world = static_cast<int>(integer(at(row, "loaded_by_world")));
    const auto runs = load_run(one, saved, spec, world);
    if (find(row, "error") != nullptr) {
        const bool refused = std::all_of(runs.begin(), runs.end(),
                                         [](const LoadedRun& run) { return !run.error.empty(); });
        return refused ? "" : "was not refused";
    }
    ModelSpec model = one.model;
    model.world = world;
    const auto& right = items(at(row, "moments_right_per_rank"), runs.size());
    for (std::size_t rank = 0; rank < runs.size(); ++rank) {
        const Moments truth = cut(saved.full_moments, model, static_cast<int>(rank));
        const bool own = runs[rank].error.empty() && same_moments(runs[rank].after.used, truth);
        if (own != flag(right[rank])) {
            return fmt::format("moments of rank {} are {}", rank, own ? "right" : "wrong");
        }
    }
    return first_of({unequal("saved_by_world", integer(at(row, "saved_by_world")),
                             std::int64_t{one.model.world}),
                     steps_apart(runs.at(0).after.steps, at(row, "step"))});
}

/// A checkpoint of one world loaded by another.
void check_reshard(const Value& cases, const Value& row, Tally& tally) {
    require_keys(row, {"dir", "saved_by_world", "loaded_by_world", "loader", "planner"},
                 {"moments_right_per_rank", "step", "error"});
    const std::string& path = text(at(row, "dir"));
    const Value* found = case_named(cases, path.substr(path.rfind('/') + 1));
    const std::string why =
        found == nullptr ? "a checkpoint of another file" : unsupported_case(*found);
    if (!why.empty()) {
        tally.unsupported("resharding: " + why);
        return;
    }
    const ShardCase one = read_shard_case(*found);
    const SavedRun saved = save_run(one);
    LoadSpec spec;
    spec.variant = text(at(row, "loader"));
    const std::string& planner = text(at(row, "planner"));
    spec.checks = planner == "xtuner" ? harness::Checks::none : harness::Checks::torch;
    const std::string problem = unsupported_load(one, saved, spec, planner, true);
    if (!problem.empty()) {
        tally.unsupported("resharding: " + problem);
        return;
    }
    tally.judge(
        fmt::format("{} into {} ranks, {}", one.name, integer(at(row, "loaded_by_world")), planner),
        [&] { return compare_reshard(one, saved, spec, row); });
}

/// Two checkpoints of the file, item by item.
void check_contents(const Value& cases, const Value& row, Tally& tally) {
    require_keys(row, {"what", "x", "y", "equal", "different_items"});
    const std::string& what = text(at(row, "what"));
    const Value* x = case_named(cases, text(at(row, "x")));
    const Value* y = case_named(cases, text(at(row, "y")));
    if (x == nullptr || y == nullptr) {
        tally.unsupported("comparison with a checkpoint of another file");
        return;
    }
    const std::string why =
        unsupported_case(*x).empty() ? unsupported_case(*y) : unsupported_case(*x);
    if (!why.empty()) {
        tally.unsupported("comparison: " + why);
        return;
    }
    const ShardCase first = read_shard_case(*x);
    const ShardCase second = read_shard_case(*y);
    if (first.variant == second.variant && first.with_model == second.with_model) {
        tally.unsupported("comparison of saves that are one and the same here: " + what);
        return;
    }
    tally.judge(fmt::format("{}: {} and {}", what, first.name, second.name), [&] {
        const bool optimizer_only = first.with_model != second.with_model;
        const auto items_apart =
            different_items(save_run(first), save_run(second), optimizer_only ? "optimizer." : "");
        return items_apart == texts(at(row, "different_items")) &&
                       items_apart.empty() == flag(at(row, "equal"))
                   ? ""
                   : fmt::format("{} items differ", items_apart.size());
    });
}

}  // namespace

void check_shard(const Value& file, Tally& tally) {
    require_keys(file, {"cases"}, {"format", "torch", "content_comparisons", "reshard"});
    const Value& cases = at(file, "cases");
    each_row(cases, "case", tally,
             [&](const Value& one, const std::string&) { check_case(one, tally); });
    if (const Value* rows = find(file, "reshard")) {
        each_row(*rows, "reshard", tally,
                 [&](const Value& row, const std::string&) { check_reshard(cases, row, tally); });
    }
    if (const Value* rows = find(file, "content_comparisons")) {
        each_row(*rows, "comparison", tally,
                 [&](const Value& row, const std::string&) { check_contents(cases, row, tally); });
    }
}

}  // namespace swaplab::oracle
