#include "checks.hpp"
#include "compare.hpp"
#include "hex.hpp"

#include "swaplab/optim/adamw_kernel.hpp"
#include "swaplab/sim/error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace swaplab::oracle {
namespace {

using Floats = std::vector<float>;

/// PyTorch's paths round in other places than we do: one step from the recorded state may differ by
/// this many spacings of the largest summand.
constexpr double spacings_allowed = 4;

/// State of one parameter as a file records it.
struct Recorded {
    Floats p, m, v, vmax;
    float step = 0;
};

/// Inputs and outputs of one update of one element, for the largest summands.
struct Summands {
    double p, m, v;
};

Summands summands_of(const optim::AdamWScalars& s, const Recorded& before, const Recorded& after,
                     float gradient, std::size_t i) {
    const auto g = static_cast<double>(gradient);
    const auto largest = [](std::initializer_list<double> values) {
        double result = 0;
        for (const double value : values) {
            result = std::isfinite(value) ? std::max(result, std::fabs(value)) : result;
        }
        return result;
    };
    const auto& root = after.vmax.empty() ? after.v : after.vmax;
    const double denominator =
        std::sqrt(static_cast<double>(root[i])) * static_cast<double>(s.inv_sqrt_bc2) +
        static_cast<double>(s.eps);
    const double update =
        static_cast<double>(s.step_size) * static_cast<double>(after.m[i]) / denominator;
    const auto old_m = static_cast<double>(before.m[i]);
    return {largest({static_cast<double>(before.p[i]), static_cast<double>(after.p[i]), update}),
            largest({old_m, static_cast<double>(after.m[i]),
                     (g - old_m) * static_cast<double>(s.beta1_complement)}),
            largest({static_cast<double>(before.v[i]), static_cast<double>(after.v[i]),
                     static_cast<double>(s.beta2_complement) * g * g})};
}

/// Where two arrays are of different lengths, or nothing.
std::string unequal_sizes(const Recorded& a, const Recorded& b, const Floats& gradient) {
    return a.p.size() == b.p.size() && a.p.size() == b.m.size() && a.p.size() == b.v.size() &&
                   a.vmax.size() == b.vmax.size() && a.p.size() == gradient.size()
               ? ""
               : "arrays of different lengths";
}

std::string compare_element(const Recorded& ours, const Recorded& expected, std::size_t i,
                            const Summands& largest) {
    const auto off = [&](const char* name, float found, float right, double summand) {
        return is_near(found, right, summand, spacings_allowed)
                   ? ""
                   : fmt::format("{}[{}] expected {}, found {}", name, i, hex_of({right}),
                                 hex_of({found}));
    };
    return first_of(
        {off("m", ours.m[i], expected.m[i], largest.m),
         off("v", ours.v[i], expected.v[i], largest.v),
         ours.vmax.empty() ? "" : off("vmax", ours.vmax[i], expected.vmax[i], largest.v),
         off("p", ours.p[i], expected.p[i], largest.p)});
}

void apply(optim::AdamWOptions& options, const Value& values) {
    for (const auto& [key, value] : members(values)) {
        const std::string& name = text(key);
        if (name == "lr") {
            options.lr = number(value);
        } else if (name == "betas") {
            options.beta1 = number(at(value, std::size_t{0}));
            options.beta2 = number(at(value, std::size_t{1}));
        } else if (name == "eps") {
            options.eps = number(value);
        } else if (name == "weight_decay") {
            options.weight_decay = number(value);
        } else if (name == "amsgrad") {
            options.amsgrad = flag(value);
        } else if (name == "maximize") {
            options.maximize = flag(value);
        } else if (name != "params") {
            throw sim::ArgumentError("unknown hyper-parameter " + name, {{"key", name}});
        }
    }
}

/// One run of one case: the updates that PyTorch recorded, each from the state recorded before it.
class Replay {
  public:
    Replay(const Value& one, bool is_fused) : case_(one), is_fused_(is_fused) {
        for (const Value& group : items(at(one, "groups"))) {
            groups_.emplace_back();
            apply(groups_.back(), group);
        }
        for (const Value& parameter : items(at(one, "params"))) {
            Recorded state;
            state.p = floats_from_tokens(text(at(parameter, "init")));
            if (static_cast<std::int64_t>(state.p.size()) !=
                optim::numel(shape(at(parameter, "shape")))) {
                throw sim::ArgumentError("init has another number of elements than shape");
            }
            state.m = state.v = state.vmax = Floats(state.p.size(), 0.0F);
            states_.push_back(state);
        }
        if (const Value* preset = find(one, "preset")) {
            for (const auto& [index, state] : members(*preset)) {
                load(states_.at(std::stoul(text(index))), state);
            }
        }
    }

    /// The first difference, or nothing.
    std::string compare(const Value& run) {
        const auto& steps = items(at(run, "steps"), items(at(case_, "grads")).size());
        for (std::size_t t = 0; t < steps.size(); ++t) {
            change_groups(t);
            for (std::size_t g = 0; g < groups_.size(); ++g) {
                for (const Value& index : items(at(at(at(case_, "groups"), g), "params"))) {
                    const auto i = static_cast<std::size_t>(integer(index));
                    const std::string problem = compare_parameter(groups_[g], steps[t], t, i);
                    if (!problem.empty()) {
                        return fmt::format("step {}, parameter {}: {}", t + 1, i, problem);
                    }
                }
            }
        }
        return "";
    }

    /// Why elements were left out, or nothing.
    [[nodiscard]] const std::string& left_out() const noexcept { return left_out_; }

  private:
    static void load(Recorded& state, const Value& preset) {
        state.step = floats_from_tokens(text(at(preset, "step"))).at(0);
        state.m = floats_from_tokens(text(at(preset, "m")));
        state.v = floats_from_tokens(text(at(preset, "v")));
        if (const Value* vmax = find(preset, "vmax"); vmax != nullptr && is_text(*vmax)) {
            state.vmax = floats_from_tokens(text(*vmax));
        }
    }

    void change_groups(std::size_t t) {
        const Value* schedule = find(case_, "sched");
        const Value* now = schedule == nullptr ? nullptr : find(*schedule, std::to_string(t));
        if (now != nullptr) {
            for (const auto& [group, values] : members(*now)) {
                apply(groups_.at(std::stoul(text(group))), values);
            }
        }
    }

    std::string compare_parameter(const optim::AdamWOptions& options, const Value& step,
                                  std::size_t t, std::size_t i) {
        Recorded& before = states_.at(i);
        Recorded after;
        after.p = floats_from_tokens(text(at(at(step, "p"), i)));
        const Value& gradient = at(at(at(case_, "grads"), t), i);
        if (gradient.is_none()) {
            return same_floats(after.p, before.p) ? "" : "moved without a gradient";
        }
        after.m = floats_from_tokens(text(at(at(step, "m"), i)));
        after.v = floats_from_tokens(text(at(at(step, "v"), i)));
        if (options.amsgrad) {
            after.vmax = floats_from_tokens(text(at(at(step, "vmax"), i)));
        } else {
            before.vmax.clear();
        }
        after.step = floats_from_tokens(text(at(at(step, "step"), i))).at(0);
        const std::string problem =
            compare_update(options, before, after, floats_from_tokens(text(gradient)));
        before = after;
        return problem;
    }

    /// Applies our update to `before` and compares with what PyTorch recorded.
    std::string compare_update(const optim::AdamWOptions& options, const Recorded& before,
                               const Recorded& after, const Floats& gradient) {
        // A float32 counter stays at 2^24, and so does PyTorch's.
        std::string problem = first_of(
            {unequal_sizes(before, after, gradient), unequal("step", before.step + 1, after.step)});
        if (!problem.empty()) {
            return problem;
        }
        Recorded ours = before;
        const auto scalars = optim::adamw_scalars(
            options, static_cast<std::int64_t>(static_cast<double>(after.step)));
        optim::adamw_update({ours.p.data(), gradient.data(), ours.m.data(), ours.v.data(),
                             options.amsgrad ? ours.vmax.data() : nullptr},
                            static_cast<std::int64_t>(ours.p.size()), scalars);
        for (std::size_t i = 0; i < ours.p.size() && problem.empty(); ++i) {
            if (!leaves_out(options, ours.v[i])) {
                problem = compare_element(ours, after, i,
                                          summands_of(scalars, before, after, gradient[i], i));
            }
        }
        return problem;
    }

    /// What is not a target of ours, told from our own side: the scalar tail of PyTorch's fused CPU
    /// kernel drops NaN from the maximum.
    bool leaves_out(const optim::AdamWOptions& options, float v_after) {
        if (!is_fused_ || !options.amsgrad || !std::isnan(v_after)) {
            return false;
        }
        left_out_ = "fused kernel that drops NaN from max_exp_avg_sq";
        return true;
    }

    const Value& case_;
    bool is_fused_;
    std::vector<optim::AdamWOptions> groups_;
    std::vector<Recorded> states_;
    std::string left_out_;
};

/// Why the whole case is not covered, or nothing.
std::string unsupported_case(const Value& one) {
    if (text(at(one, "cls")) != "AdamW") {
        return "class " + text(at(one, "cls"));
    }
    if (text(at(one, "dtype")) != "fp32") {
        return "dtype " + text(at(one, "dtype"));
    }
    if (find(one, "scaler") != nullptr) {
        return "gradient scaler";
    }
    for (const Value& group : items(at(one, "groups"))) {
        if (find(group, "lr_kind") != nullptr) {
            return "lr given as a tensor";
        }
    }
    return "";
}

/// PyTorch's fused CPU kernel pairs elements in memory order, so with strides it updates others
/// than were asked for.
std::string unsupported_run(const Value& one, const Value& run, bool is_fused) {
    if (find(run, "error") != nullptr) {
        return "a run that raises";
    }
    for (const Value& parameter : items(at(one, "params"))) {
        if (is_fused &&
            (find(parameter, "layout") != nullptr || find(parameter, "grad_layout") != nullptr)) {
            return "fused kernel on strided tensors";
        }
    }
    return "";
}

void check_run(const Value& one, const Value& run, const std::string& path, Tally& tally) {
    const bool is_fused = path == "fused";
    const std::string whole = unsupported_case(one);
    const std::string why = whole.empty() ? unsupported_run(one, run, is_fused) : whole;
    if (!why.empty()) {
        tally.unsupported(why);
        return;
    }
    Replay replay(one, is_fused);
    const std::string problem = replay.compare(run);
    if (problem.empty() && !replay.left_out().empty()) {
        tally.unsupported(replay.left_out());
    } else {
        tally.row(text(at(one, "id")) + ", " + path, problem);
    }
}

}  // namespace

void check_adamw(const Value& file, Tally& tally) {
    each_row(at(file, "cases"), "case", tally, [&](const Value& one, const std::string&) {
        require_keys(one, {"id", "cls", "dtype", "groups", "params", "grads", "runs"},
                     {"preset", "sched", "scaler"});
        for (const Value& run : items(at(one, "runs"))) {
            require_keys(run, {"paths"}, {"steps", "error", "ulp", "state_strides"});
            for (const std::string& path : texts(at(run, "paths"))) {
                check_run(one, run, path, tally);
            }
        }
    });
}

}  // namespace swaplab::oracle
