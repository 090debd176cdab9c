#include "checks.hpp"
#include "compare.hpp"
#include "replay_resume.hpp"

#include "swaplab/sim/error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

namespace swaplab::oracle {
namespace {

bool same_trace(const Trace& a, const Trace& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), same_entry);
}

bool shows_what_it_uses(const Entry& entry) {
    return same_moments(entry.shown, entry.used);
}

std::string compare_entry(const Entry& found, const Value& expected) {
    require_keys(expected, {"p", "state_dict", "step"}, {"used_by_step"});
    const Value* used = find(expected, "used_by_step");
    const bool as_shown = used == nullptr || is_text(*used);
    if (used != nullptr && as_shown && text(*used) != "same as state_dict") {
        return "used_by_step " + text(*used);
    }
    const std::string of_step =
        moments_apart(found.used, read_moments(as_shown ? at(expected, "state_dict") : *used));
    return first_of({params_apart(found.params, read_values(at(expected, "p"))),
                     moments_apart(found.shown, read_moments(at(expected, "state_dict"))),
                     of_step.empty() ? "" : "used by step: " + of_step,
                     steps_apart(found.steps, at(expected, "step"))});
}

std::string compare_trace(const Trace& found, const Value& expected) {
    const auto& entries = items(expected, found.size());
    for (std::size_t k = 0; k < entries.size(); ++k) {
        const std::string problem = compare_entry(found[k], entries[k]);
        if (!problem.empty()) {
            return fmt::format("{} steps after the load: {}", k, problem);
        }
    }
    return "";
}

double norm_of_step(const Trace& trace, const std::string& name) {
    double sum = 0;
    const Floats& before = trace.at(0).params.at(name);
    const Floats& after = trace.at(1).params.at(name);
    for (std::size_t i = 0; i < before.size(); ++i) {
        const double moved = static_cast<double>(after[i]) - static_cast<double>(before[i]);
        sum += moved * moved;
    }
    return std::sqrt(sum);
}

double largest_distance(const Values& a, const Values& b) {
    double largest = 0;
    for (const auto& [name, values] : a) {
        const Floats& other = b.at(name);
        for (std::size_t i = 0; i < values.size(); ++i) {
            largest = std::max(
                largest, std::fabs(static_cast<double>(values[i]) - static_cast<double>(other[i])));
        }
    }
    return largest;
}

/// Each of both runs that a figure compares may be off by `bound` per element.
std::string compare_ratios(const Trace& found, const Trace& reference, const Value& ratios,
                           double bound) {
    if (members(ratios).size() != found.at(0).params.size()) {
        return "update norms of other parameters";
    }
    for (const auto& [name, ratio] : members(ratios)) {
        const double right = norm_of_step(reference, text(name));
        const double own = norm_of_step(found, text(name)) / right;
        const auto elements = static_cast<double>(found.at(0).params.at(text(name)).size());
        const double tolerance = (1 + own) * 2 * bound * std::sqrt(elements) / right;
        if (!(std::fabs(own - number(ratio)) <= tolerance)) {
            return fmt::format("update norm of {}: expected {} of the right one, found {}",
                               text(name), number(ratio), own);
        }
    }
    return "";
}

std::string compare_difference(const Trace& found, const Trace& reference, const Value& rows) {
    const auto& steps = items(rows, found.size() - 1);
    for (std::size_t k = 1; k < found.size(); ++k) {
        const Value& row = steps[k - 1];
        require_keys(row, {"k", "max_abs_param_diff"}, {"update_norm_ratio_to_reference"});
        const double own = largest_distance(found[k].params, reference.at(k).params);
        const double expected = number(at(row, "max_abs_param_diff"));
        const double bound = params_bound(reference.at(k).params);
        if (integer(at(row, "k")) != static_cast<std::int64_t>(k) ||
            !(std::fabs(own - expected) <= 2 * bound)) {
            return fmt::format("max_abs_param_diff {} expected {}, found {}", k, expected, own);
        }
    }
    const Value* ratios = find(at(rows, std::size_t{0}), "update_norm_ratio_to_reference");
    return ratios == nullptr
               ? ""
               : compare_ratios(found, reference, *ratios, params_bound(reference.at(1).params));
}

std::string compare_shown(const Trace& found, const Value& fact) {
    if (!is_array(fact)) {
        return unequal("state_dict_equals_used_by_step", flag(fact),
                       std::all_of(found.begin(), found.end(), shows_what_it_uses));
    }
    const auto& entries = items(fact, found.size());
    for (std::size_t k = 0; k < entries.size(); ++k) {
        if (flag(entries[k]) != shows_what_it_uses(found[k])) {
            return fmt::format("state_dict_equals_used_by_step differs {} steps after the load", k);
        }
    }
    return "";
}

std::string compare_options(const char* name, const Value& expected,
                            const optim::AdamWOptions& found) {
    require_keys(expected, {"lr", "betas", "eps", "weight_decay", "amsgrad"});
    return read_options(expected) == found ? "" : std::string(name) + " is another one";
}

std::string compare_dict(const Resumed& found, const Value& run) {
    if (!found.dict) {
        return "";
    }
    const auto same = [&](const char* name, const std::vector<std::string>& own) {
        return texts(at(run, name)) == own ? "" : std::string(name) + " differs";
    };
    return first_of(
        {unequal("target_changed_when_source_steps",
                 flag(at(run, "target_changed_when_source_steps")), found.dict->target_changed),
         same("source_state_keys_after_load", found.dict->source_keys),
         same("tensors_shared_with_source", found.dict->shared)});
}

/// The facts that `run` states beside its trace, each of which may be absent.
std::string compare_facts(const Resumed& found, const Trace& reference, const Value& run) {
    const auto when = [&](const char* name, auto compare) {
        const Value* fact = find(run, name);
        return fact == nullptr ? std::string() : std::string(compare(*fact));
    };
    const Trace& trace = found.trace;
    return first_of(
        {when("cached_group_is_live",
              [&](const Value& fact) {
                  return unequal("cached_group_is_live", flag(fact), found.group_is_live);
              }),
         when("cached_moment_is_state_moment",
              [&](const Value& fact) {
                  return unequal("cached_moment_is_state_moment", flag(fact),
                                 found.moments_are_live);
              }),
         when("live_hp",
              [&](const Value& fact) { return compare_options("live_hp", fact, trace[0].live); }),
         when("used_hp",
              [&](const Value& fact) {
                  return compare_options("used_hp", fact, trace[0].used_options);
              }),
         when("state_dict_equals_used_by_step",
              [&](const Value& fact) { return compare_shown(trace, fact); }),
         when("params_unchanged_by_steps",
              [&](const Value& fact) {
                  return unequal("params_unchanged_by_steps", flag(fact),
                                 std::all_of(trace.begin(), trace.end(), [&](const Entry& entry) {
                                     return same_values(entry.params, trace[0].params);
                                 }));
              }),
         when("difference",
              [&](const Value& fact) { return compare_difference(trace, reference, fact); })});
}

/// All that the file states about one resumed run.
std::string compare_run(const Resumed& found, const Trace& reference, const Value& run) {
    require_keys(run, {"variant", "kind", "equals_uninterrupted"},
                 {"device_copy", "cached_group_is_live", "cached_moment_is_state_moment", "live_hp",
                  "used_hp", "state_dict_equals_used_by_step", "params_unchanged_by_steps",
                  "difference", "trace", "target_changed_when_source_steps",
                  "source_state_keys_after_load", "tensors_shared_with_source"});
    const bool equals = flag(at(run, "equals_uninterrupted"));
    const Value* trace = find(run, "trace");
    if (trace == nullptr && !equals) {
        return "differs from the uninterrupted run and states no trace";
    }
    return first_of({unequal("equals_uninterrupted", equals, same_trace(found.trace, reference)),
                     trace == nullptr ? "" : compare_trace(found.trace, *trace),
                     compare_facts(found, reference, run), compare_dict(found, run)});
}

/// Why a run cannot be repeated on an accelerator with our classes, or nothing. Only what was done
/// decides, never what came out.
std::string unsupported_run(const Value& run) {
    const std::string& name = text(at(run, "variant"));
    const std::string& kind = text(at(run, "kind"));
    const auto variant = variant_named(name);
    if (!variant) {
        return "variant " + name;
    }
    if (std::find(resume_kinds().begin(), resume_kinds().end(), kind) == resume_kinds().end()) {
        return "kind " + kind;
    }
    const Value* copy = find(run, "device_copy");
    // Where the file does not say, make_resume.py did not copy; that shows where an optimizer with
    // stale moments loads its own ones.
    if (copy != nullptr ? !flag(*copy) : name == "V0" && kind == "self_load") {
        return "device_copy false: the moments' device is the host";
    }
    if (kind.ends_with("_live_dict") && variant->what != Variant::Class::specimen) {
        return "a live dict that changes: our state_dict() is a snapshot";
    }
    return "";
}

std::optional<double> read_number(std::string_view words) {
    double value = 0;
    const auto [end, error] = std::from_chars(words.data(), words.data() + words.size(), value);
    return error == std::errc{} && end == words.data() + words.size() ? std::optional(value)
                                                                      : std::nullopt;
}

/// "lr schedule A*(1-Bk)" for the k-th step (from 1) after the load.
std::optional<Edit> read_schedule(std::string_view words) {
    constexpr std::string_view begin = "lr schedule ";
    constexpr std::string_view middle = "*(1-";
    constexpr std::string_view end = "k)";
    const std::size_t star = words.find(middle);
    if (!words.starts_with(begin) || !words.ends_with(end) || star == std::string_view::npos) {
        return std::nullopt;
    }
    const std::size_t factor = star + middle.size();
    const auto from = read_number(words.substr(begin.size(), star - begin.size()));
    const auto by = read_number(words.substr(factor, words.size() - end.size() - factor));
    if (!from || !by) {
        return std::nullopt;
    }
    return [from = *from, by = *by](optim::Optimizer& optimizer, std::size_t k) {
        optimizer.param_groups().at(0).options.lr = from * (1 - by * static_cast<double>(k + 1));
    };
}

/// "lr=0.002,weight_decay=0".
std::optional<Edit> read_assignments(std::string_view words) {
    std::vector<std::pair<double optim::AdamWOptions::*, double>> values;
    while (!words.empty()) {
        const std::string_view part = words.substr(0, words.find(','));
        words.remove_prefix(std::min(part.size() + 1, words.size()));
        const std::size_t equals = std::min(part.find('='), part.size() - 1);
        const std::string_view name = part.substr(0, equals);
        const auto value = read_number(part.substr(equals + 1));
        if (!value || (name != "lr" && name != "eps" && name != "weight_decay")) {
            return std::nullopt;
        }
        values.emplace_back(name == "lr"    ? &optim::AdamWOptions::lr
                            : name == "eps" ? &optim::AdamWOptions::eps
                                            : &optim::AdamWOptions::weight_decay,
                            *value);
    }
    return [values](optim::Optimizer& optimizer, std::size_t) {
        for (const auto& [option, value] : values) {
            optimizer.param_groups().at(0).options.*option = value;
        }
    };
}

/// What the words after the last ": " say.
std::optional<Edit> read_edit(std::string_view what) {
    const std::size_t colon = what.rfind(": ");
    const std::string_view words = colon == std::string_view::npos ? what : what.substr(colon + 2);
    auto schedule = read_schedule(words);
    return schedule ? schedule : read_assignments(words);
}

/// The uninterrupted run of each variant, made once.
class References {
  public:
    References(const Resume& resume, std::size_t count, Edit edit)
        : resume_(resume), count_(count), edit_(std::move(edit)) {}

    const Trace& of(const std::string& variant) {
        const auto [found, is_new] = traces_.try_emplace(variant);
        if (is_new) {
            found->second = resume_.uninterrupted(*variant_named(variant), count_, edit_);
        }
        return found->second;
    }
    [[nodiscard]] std::size_t count() const noexcept { return count_; }
    [[nodiscard]] const Edit& edit() const noexcept { return edit_; }

  private:
    const Resume& resume_;
    std::size_t count_;
    Edit edit_;
    std::map<std::string, Trace> traces_;
};

/// `facts`: what each of `runs` must state; with fewer, less would agree.
void check_runs(const Value& runs, std::initializer_list<const char*> facts,
                const std::string& name, const Resume& resume, References& references,
                Tally& tally) {
    for (const Value& run : items(runs)) {
        const std::string& variant = text(at(run, "variant"));
        const std::string& kind = text(at(run, "kind"));
        const std::string why = unsupported_run(run);
        if (!why.empty()) {
            tally.unsupported(why);
            continue;
        }
        tally.judge(fmt::format("{}, {} {}", name, variant, kind), [&] {
            for (const char* fact : facts) {
                (void)at(run, fact);
            }
            return compare_run(resume.resumed(*variant_named(variant), kind, references.count(),
                                              references.edit()),
                               references.of(variant), run);
        });
    }
}

/// Variants whose uninterrupted run is not V0's.
std::vector<std::string> differing_before_load(References& references) {
    std::vector<std::string> names;
    for (const char* variant : {"V0", "V1", "V2"}) {
        if (!same_trace(references.of(variant), references.of("V0"))) {
            names.emplace_back(variant);
        }
    }
    return names;
}

std::size_t steps_before(const Value& one) {
    const std::int64_t n = integer(at(one, "N"));
    if (n < 0) {
        throw sim::ArgumentError("N is negative");
    }
    return static_cast<std::size_t>(n);
}

/// Entries of a trace but the first.
std::size_t steps_of(const Value& trace) {
    if (items(trace).empty()) {
        throw sim::ArgumentError("an empty trace");
    }
    return items(trace).size() - 1;
}

void check_case(const ResumeData& data, const Value& one, const std::string& name, Tally& tally) {
    require_keys(one,
                 {"N", "betas", "amsgrad", "lr", "weight_decay", "eps", "uninterrupted", "runs",
                  "swap_uninterrupted_equals_adamw", "adamw_resume_equals_uninterrupted"},
                 {"params_f64", "variant_differs_before_any_load"});
    const Resume resume(data, read_options(one), steps_before(one));
    const Value& expected = at(one, "uninterrupted");
    References references(resume, steps_of(expected), {});
    for (const char* variant : {"V0", "V2", "AdamW"}) {
        tally.judge(name + ", " + variant + " uninterrupted",
                    [&] { return compare_trace(references.of(variant), expected); });
    }
    tally.judge(name + ", swap_uninterrupted_equals_adamw", [&] {
        return unequal("equal", flag(at(one, "swap_uninterrupted_equals_adamw")),
                       same_trace(references.of("V2"), references.of("AdamW")));
    });
    tally.judge(name + ", adamw_resume_equals_uninterrupted", [&] {
        const Resumed resumed =
            resume.resumed(*variant_named("AdamW"), "fresh", references.count(), {});
        return unequal("equal", flag(at(one, "adamw_resume_equals_uninterrupted")),
                       same_trace(resumed.trace, references.of("AdamW")));
    });
    tally.judge(name + ", variant_differs_before_any_load", [&] {
        const Value* differing = find(one, "variant_differs_before_any_load");
        const auto names = differing == nullptr ? std::vector<std::string>() : texts(*differing);
        return names == differing_before_load(references) ? "" : "other variants differ";
    });
    if (find(one, "params_f64") != nullptr) {
        tally.unsupported("parameters in float64");
    }
    check_runs(at(one, "runs"),
               {"cached_group_is_live", "cached_moment_is_state_moment", "live_hp", "used_hp",
                "state_dict_equals_used_by_step"},
               name, resume, references, tally);
}

/// `cases` holds the hyper-parameters that an extra entry leaves out.
void check_extra(const ResumeData& data, const Value& cases, const Value& one, Tally& tally) {
    require_keys(one, {"what", "N", "betas", "amsgrad", "runs"},
                 {"uninterrupted_with_same_edit", "note"});
    const optim::AdamWOptions options = read_options(one, read_options(at(cases, std::size_t{0})));
    const Resume resume(data, options, steps_before(one));
    const std::string& what = text(at(one, "what"));
    const Value& runs = at(one, "runs");
    const Value* edited = find(one, "uninterrupted_with_same_edit");
    if (edited == nullptr) {
        const Value& shown = at(at(runs, std::size_t{0}), "state_dict_equals_used_by_step");
        References references(resume, steps_of(shown), {});
        check_runs(runs, {"device_copy", "state_dict_equals_used_by_step"}, what, resume,
                   references, tally);
        return;
    }
    const auto edit = read_edit(what);
    if (!edit) {
        tally.unsupported("edit \"" + what + "\"",
                          1 + static_cast<std::int64_t>(items(runs).size()));
        return;
    }
    References references(resume, steps_of(*edited), *edit);
    tally.judge(what + ", AdamW uninterrupted",
                [&] { return compare_trace(references.of("AdamW"), *edited); });
    check_runs(runs, {"params_unchanged_by_steps"}, what, resume, references, tally);
}

}  // namespace

void check_resume(const Value& file, Tally& tally) {
    require_keys(file, {"shapes", "initial_params", "gradients", "other_gradients", "cases"},
                 {"format", "torch", "cpu_capability", "gradient_use", "extra"});
    const ResumeData data = read_resume_data(file);
    const Value& cases = at(file, "cases");
    each_row(cases, "case", tally, [&](const Value& one, const std::string& name) {
        check_case(data, one, name, tally);
    });
    if (const Value* extra = find(file, "extra")) {
        each_row(*extra, "extra", tally, [&](const Value& one, const std::string&) {
            check_extra(data, cases, one, tally);
        });
    }
}

}  // namespace swaplab::oracle
