#include "checks.hpp"
#include "replay.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace swaplab::oracle {
namespace {

using Edit = std::function<void(optim::Optimizer& optimizer, std::size_t k)>;
using Trace = std::vector<Entry>;

optim::AdamWOptions read_options(const Value& hp) {
    optim::AdamWOptions options;
    options.lr = number(at(hp, "lr"));
    options.beta1 = number(at(at(hp, "betas"), std::size_t{0}));
    options.beta2 = number(at(at(hp, "betas"), std::size_t{1}));
    options.weight_decay = number(at(hp, "weight_decay"));
    options.amsgrad = flag(at(hp, "amsgrad"));
    if (const Value* eps = find(hp, "eps")) {
        options.eps = number(*eps);
    }
    return options;
}

/// What all cases of a file share.
struct File {
    std::vector<std::pair<std::string, Shape>> shapes;
    Values initial;
    std::vector<Values> gradients;
    std::vector<Values> other_gradients;

    explicit File(const Value& file)
        : shapes(read_shapes(at(file, "shapes"))),
          initial(read_values(at(file, "initial_params"))) {
        for (const Value& one : items(at(file, "gradients"))) {
            gradients.push_back(read_values(one));
        }
        for (const Value& one : items(at(file, "other_gradients"))) {
            other_gradients.push_back(read_values(one));
        }
    }
};

/// One resume: train N steps, save, bring the state back in one of several ways, go on.
class Resume {
  public:
    Resume(const File& file, const optim::AdamWOptions& options, std::size_t n)
        : file_(file), n_(n) {
        model_.shapes = file.shapes;
        model_.groups = {{{}, options}};
        for (const auto& entry : file.shapes) {
            model_.groups[0].names.push_back(entry.first);
        }
    }

    /// N: steps before the save.
    [[nodiscard]] std::size_t steps_before() const noexcept { return n_; }

    Trace uninterrupted(const Variant& variant, std::size_t count, const Edit& edit) const {
        Trace trace;
        on_ranks(1, [&](sim::Device& device, sim::Communicator& communicator) {
            Run run(device, communicator, model_, variant, file_.initial);
            train(run);
            trace = follow(run, count, edit);
        });
        return trace;
    }

    /// `kind` as in the file. `other`: hyper-parameters of fresh_other_hp.
    Trace resumed(const Variant& variant, const std::string& kind, const optim::AdamWOptions& other,
                  std::size_t count, const Edit& edit) const {
        Trace trace;
        on_ranks(1, [&](sim::Device& device, sim::Communicator& communicator) {
            Run first(device, communicator, model_, variant, file_.initial);
            train(first);
            const Values at_n = first.entry().params;
            if (kind == "fresh" || kind == "fresh_other_hp" || kind == "disk" ||
                kind == "stepped") {
                const optim::StateDict saved =
                    optim::state_dict_from_value(optim::to_value(first.optimizer().state_dict()));
                ModelSpec model = model_;
                if (kind == "fresh_other_hp") {
                    const bool amsgrad = model.groups[0].options.amsgrad;
                    model.groups[0].options = other;
                    model.groups[0].options.amsgrad = amsgrad;
                }
                Run second(device, communicator, model, variant,
                           kind == "stepped" ? file_.initial : at_n);
                for (std::size_t i = 0; kind == "stepped" && i < 3; ++i) {
                    second.step(file_.other_gradients.at(i));
                }
                second.set_params(at_n);
                second.optimizer().load_state_dict(saved);
                trace = follow(second, count, edit);
            } else {
                trace = resumed_in_process(first, variant, kind, at_n, count, edit);
            }
        });
        return trace;
    }

  private:
    Trace resumed_in_process(Run& run, const Variant& variant, const std::string& kind,
                             const Values& at_n, std::size_t count, const Edit& edit) const {
        // PyTorch's state_dict() is live. Ours is a snapshot on purpose; only specimens imitate it.
        const bool live = kind != "in_process" && variant.what == Variant::Class::specimen;
        const optim::StateDict saved =
            run.optimizer().state_dict(live ? optim::Snapshot::live : optim::Snapshot::owned);
        for (std::size_t i = 0; kind != "self_load" && i < 2; ++i) {
            run.step(file_.other_gradients.at(i));
        }
        run.set_params(at_n);
        run.optimizer().load_state_dict(saved);
        return follow(run, count, edit);
    }

    void train(Run& run) const {
        for (std::size_t t = 0; t < n_; ++t) {
            run.step(file_.gradients.at(t));
        }
    }

    Trace follow(Run& run, std::size_t count, const Edit& edit) const {
        Trace trace{run.entry()};
        for (std::size_t k = 0; k < count; ++k) {
            if (edit) {
                edit(run.optimizer(), k);
            }
            run.step(file_.gradients.at(n_ + k));
            trace.push_back(run.entry());
        }
        return trace;
    }

    const File& file_;
    std::size_t n_;
    ModelSpec model_;
};

bool same_trace(const Trace& a, const Trace& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), same_entry);
}

bool shows_what_it_uses(const Entry& entry) {
    return same_moments(entry.shown, entry.used);
}

/// `steps`: taken since the beginning.
std::string compare_entry(const Entry& found, const Value& expected, std::size_t steps) {
    std::string problem = far_apart(found.params, read_values(at(expected, "p")), steps);
    if (problem.empty()) {
        problem = far_apart(found.shown, read_moments(at(expected, "state_dict")), steps);
    }
    const Value* used = find(expected, "used_by_step");
    if (problem.empty() && used != nullptr) {
        problem = far_apart(
            found.used, read_moments(is_text(*used) ? at(expected, "state_dict") : *used), steps);
        problem = problem.empty() ? "" : "used by step: " + problem;
    }
    for (const auto& [name, step] : members(at(expected, "step"))) {
        const auto own = found.steps.find(text(name));
        if (problem.empty() &&
            (own == found.steps.end() || static_cast<double>(own->second) != number(step))) {
            problem = "step of " + text(name);
        }
    }
    return problem;
}

/// The trace begins `n` steps after the beginning.
std::string compare_trace(const Trace& found, const Value& expected, std::size_t n) {
    const auto& entries = items(expected);
    for (std::size_t k = 0; k < entries.size(); ++k) {
        const std::string problem =
            k < found.size() ? compare_entry(found[k], entries[k], n + k) : "is missing";
        if (!problem.empty()) {
            return fmt::format("{} steps after the load: {}", k, problem);
        }
    }
    return "";
}

std::string unequal(const char* name, bool expected, bool found) {
    return expected == found ? "" : fmt::format("{} expected {}, found {}", name, expected, found);
}

bool params_unchanged(const Trace& trace) {
    return std::all_of(trace.begin(), trace.end(),
                       [&](const Entry& entry) { return entry.params == trace.front().params; });
}

/// The facts that the file states about one resumed run.
std::string compare_run(const Trace& found, const Trace& reference, const Value& run,
                        std::size_t n) {
    std::string problem = unequal("equals_uninterrupted", flag(at(run, "equals_uninterrupted")),
                                  same_trace(found, reference));
    if (const Value* fact = find(run, "state_dict_equals_used_by_step"); fact && problem.empty()) {
        if (is_array(*fact)) {
            for (std::size_t k = 0; k < items(*fact).size() && problem.empty(); ++k) {
                problem = unequal("state_dict_equals_used_by_step", flag(at(*fact, k)),
                                  shows_what_it_uses(found.at(k)));
            }
        } else {
            problem = unequal("state_dict_equals_used_by_step", flag(*fact),
                              std::all_of(found.begin(), found.end(), shows_what_it_uses));
        }
    }
    if (const Value* fact = find(run, "params_unchanged_by_steps"); fact && problem.empty()) {
        problem = unequal("params_unchanged_by_steps", flag(*fact), params_unchanged(found));
    }
    if (const Value* trace = find(run, "trace"); trace && problem.empty()) {
        problem = compare_trace(found, *trace, n);
    }
    return problem;
}

/// Why a run cannot be repeated on an accelerator with our classes, or nothing.
std::string unsupported_run(const Value& run) {
    const std::string& variant = text(at(run, "variant"));
    const std::string& kind = text(at(run, "kind"));
    static const std::vector<std::string> kinds{
        "fresh",     "fresh_other_hp",      "stepped", "in_process", "disk",
        "self_load", "in_process_live_dict"};
    const auto known = variant_named(variant);
    if (!known) {
        return "variant " + variant;
    }
    const Value* copy = find(run, "device_copy");
    const auto& defects = known->defects;
    const bool is_stale =
        std::find(defects.begin(), defects.end(), "stale_moments") != defects.end();
    // Where the file does not say, moments were not copied; it shows in what the optimizer loads
    // from itself.
    if (copy != nullptr ? !flag(*copy) : is_stale && kind == "self_load") {
        return "device_copy false: the moments' device is the host";
    }
    if (kind == "two_from_one_live_dict") {
        return "step tensors shared through a live dict";
    }
    if (std::find(kinds.begin(), kinds.end(), kind) == kinds.end()) {
        return "kind " + kind;
    }
    const bool is_specimen = known->what == Variant::Class::specimen;
    if (kind == "in_process_live_dict" && !is_specimen) {
        return "a live dict that changes: our state_dict() is a snapshot";
    }
    if (!is_specimen && !flag(at(run, "equals_uninterrupted"))) {
        return "an error of " + variant + " that ours does not have";
    }
    return "";
}

/// "a=1,b=2" or "lr schedule A*(1-Bk)" in the words after the last ": ".
std::optional<Edit> read_edit(const std::string& what) {
    const std::size_t colon = what.rfind(": ");
    const std::string words = colon == std::string::npos ? what : what.substr(colon + 2);
    double from = 0;
    double by = 0;
    if (std::sscanf(words.c_str(), "lr schedule %lf*(1-%lfk)", &from, &by) == 2) {
        return [from, by](optim::Optimizer& optimizer, std::size_t k) {
            optimizer.param_groups().at(0).options.lr =
                from * (1 - by * static_cast<double>(k + 1));
        };
    }
    std::vector<std::pair<std::string, double>> values;
    for (std::size_t begin = 0; begin < words.size();) {
        const std::size_t end = std::min(words.find(',', begin), words.size());
        const std::string part = words.substr(begin, end - begin);
        const std::size_t equals = part.find('=');
        if (equals == std::string::npos) {
            return std::nullopt;
        }
        values.emplace_back(part.substr(0, equals),
                            std::strtod(part.c_str() + equals + 1, nullptr));
        begin = end + 1;
    }
    const bool known = std::all_of(values.begin(), values.end(), [](const auto& value) {
        return value.first == "lr" || value.first == "weight_decay" || value.first == "eps";
    });
    if (!known) {
        return std::nullopt;
    }
    return [values](optim::Optimizer& optimizer, std::size_t) {
        optim::AdamWOptions& options = optimizer.param_groups().at(0).options;
        for (const auto& [name, value] : values) {
            (name == "lr"    ? options.lr
             : name == "eps" ? options.eps
                             : options.weight_decay) = value;
        }
    };
}

/// Hyper-parameters of "fresh_other_hp": the ones that the stale groups of V0 were seen to use.
optim::AdamWOptions other_options(const Value& one) {
    for (const Value& run : items(at(one, "runs"))) {
        const Value* used = find(run, "used_hp");
        if (text(at(run, "kind")) == "fresh_other_hp" && text(at(run, "variant")) == "V0" && used) {
            return read_options(*used);
        }
    }
    optim::AdamWOptions options;
    options.lr = 5e-2;
    options.beta1 = 0.8;
    options.beta2 = 0.95;
    options.eps = 1e-6;
    options.weight_decay = 0;
    return options;
}

/// The uninterrupted run of each variant, made once.
class References {
  public:
    References(const Resume& resume, std::size_t count, Edit edit)
        : resume_(resume), count_(count), edit_(std::move(edit)) {}

    const Trace& of(const std::string& variant) {
        auto found = traces_.find(variant);
        if (found == traces_.end()) {
            found =
                traces_
                    .emplace(variant, resume_.uninterrupted(*variant_named(variant), count_, edit_))
                    .first;
        }
        return found->second;
    }

  private:
    const Resume& resume_;
    std::size_t count_;
    Edit edit_;
    std::map<std::string, Trace> traces_;
};

void check_runs(const Value& one, const std::string& name, const Resume& resume,
                References& references, std::size_t count, const Edit& edit, Tally& tally) {
    const optim::AdamWOptions other = other_options(one);
    for (const Value& run : items(at(one, "runs"))) {
        const std::string& variant = text(at(run, "variant"));
        const std::string& kind = text(at(run, "kind"));
        const std::string why = unsupported_run(run);
        if (!why.empty()) {
            tally.unsupported(why);
            continue;
        }
        const Trace found = resume.resumed(*variant_named(variant), kind, other, count, edit);
        tally.row(fmt::format("{}, {} {}", name, variant, kind),
                  compare_run(found, references.of(variant), run, resume.steps_before()));
    }
}

void check_case(const File& file, const Value& one, Tally& tally) {
    const auto n = static_cast<std::size_t>(integer(at(one, "N")));
    const Resume resume(file, read_options(one), n);
    const Value& expected = at(one, "uninterrupted");
    const std::size_t count = items(expected).size() - 1;
    References references(resume, count, {});
    const std::string name = fmt::format("N={} betas={} amsgrad={}", n,
                                         optim::repr(at(one, "betas")), flag(at(one, "amsgrad")));
    for (const char* variant : {"V0", "V2", "AdamW"}) {
        tally.row(fmt::format("{}, {} uninterrupted", name, variant),
                  compare_trace(references.of(variant), expected, n));
    }
    tally.row(name + ", swap_uninterrupted_equals_adamw",
              unequal("equal", flag(at(one, "swap_uninterrupted_equals_adamw")),
                      same_trace(references.of("V2"), references.of("AdamW"))));
    tally.row(name + ", adamw_resume_equals_uninterrupted",
              unequal("equal", flag(at(one, "adamw_resume_equals_uninterrupted")),
                      same_trace(resume.resumed(*variant_named("AdamW"), "fresh", {}, count, {}),
                                 references.of("AdamW"))));
    check_runs(one, name, resume, references, count, {}, tally);
}

/// Steps after the load, from what the file records of them.
std::size_t steps_recorded(const Value& one) {
    if (const Value* edited = find(one, "uninterrupted_with_same_edit")) {
        return items(*edited).size() - 1;
    }
    const Value& first = at(at(one, "runs"), std::size_t{0});
    return items(at(first, "state_dict_equals_used_by_step")).size() - 1;
}

/// `cases` holds the hyper-parameters that an extra entry leaves out.
void check_extra(const File& file, const Value& cases, const Value& one, Tally& tally) {
    optim::AdamWOptions options = read_options(at(cases, std::size_t{0}));
    options.beta1 = number(at(at(one, "betas"), std::size_t{0}));
    options.beta2 = number(at(at(one, "betas"), std::size_t{1}));
    options.amsgrad = flag(at(one, "amsgrad"));
    const Resume resume(file, options, static_cast<std::size_t>(integer(at(one, "N"))));
    const std::string& what = text(at(one, "what"));
    const Value* edited = find(one, "uninterrupted_with_same_edit");
    Edit edit;
    if (edited != nullptr) {
        const auto read = read_edit(what);
        if (!read) {
            tally.unsupported("edit \"" + what + "\"",
                              1 + static_cast<std::int64_t>(items(at(one, "runs")).size()));
            return;
        }
        edit = *read;
    }
    const std::size_t count = steps_recorded(one);
    References references(resume, count, edit);
    if (edited != nullptr) {
        tally.row(what + ", AdamW uninterrupted",
                  compare_trace(references.of("AdamW"), *edited, resume.steps_before()));
    }
    check_runs(one, what, resume, references, count, edit, tally);
}

}  // namespace

void check_resume(const Value& file, Tally& tally) {
    const File data(file);
    for (const Value& one : items(at(file, "cases"))) {
        check_case(data, one, tally);
    }
    if (const Value* extra = find(file, "extra")) {
        for (const Value& one : items(*extra)) {
            check_extra(data, at(file, "cases"), one, tally);
        }
    }
}

}  // namespace swaplab::oracle
