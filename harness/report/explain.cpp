#include "report/explain.hpp"

#include "scenario/play/record.hpp"

#include "swaplab/sim/units.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace swaplab::harness::report {
namespace {

using namespace scenario;

std::string count_of(std::int64_t count, const char* word) {
    return sim::count_of(static_cast<std::uint64_t>(count), word);
}

std::string parts_text(const Parts& parts) {
    if (parts.model && parts.optimizer) {
        return parts.optimizer_first ? "optimizer and model" : "model and optimizer";
    }
    return parts.model ? "model only" : "optimizer only";
}

std::string via_text(Via via) {
    switch (via) {
        case Via::dcp:
            return "a DCP directory";
        case Via::memory:
            return "an owned state dict";
        case Via::live:
            return "a state dict that shares the live buffers";
    }
    return "";
}

std::string checks_text(Checks checks) {
    return checks == Checks::full    ? ""
           : checks == Checks::torch ? ", PyTorch's checks"
                                     : ", no checks";
}

std::string patch_text(const HyperPatch& patch) {
    std::vector<std::string> out;
    const auto number = [&](const char* name, const std::optional<double>& value) {
        if (value) {
            out.push_back(fmt::format("{} = {}", name, *value));
        }
    };
    number("lr", patch.lr);
    number("beta1", patch.beta1);
    number("beta2", patch.beta2);
    number("eps", patch.eps);
    number("weight_decay", patch.weight_decay);
    if (patch.amsgrad) {
        out.push_back(*patch.amsgrad ? "amsgrad on" : "amsgrad off");
    }
    if (patch.maximize) {
        out.push_back(*patch.maximize ? "maximize on" : "maximize off");
    }
    return join(out);
}

/// One sentence per verb.
struct Teller {
    const SetUp& after;

    std::string operator()(const TrainStep& step) const {
        std::string out = count_of(step.steps, "training step");
        out += step.none.empty() ? "" : "; no gradient for " + join(step.none);
        out += step.zero.empty() ? "" : "; zero gradient for " + join(step.zero);
        out += step.lr.empty() ? "" : "; lr written before each step";
        return out + (step.gradients.empty() ? "" : "; gradients of " + step.gradients);
    }
    std::string operator()(const SaveStep& step) const {
        return fmt::format("\"{}\", {}, as {}{}", step.to, parts_text(step.what),
                           via_text(step.via), checks_text(step.checks));
    }
    std::string operator()(const LoadStep& step) const {
        std::string out =
            fmt::format("\"{}\", {}, from {}{}", step.from, parts_text(step.what),
                        step.from_checkpoint ? "a given directory" : via_text(step.via),
                        checks_text(step.checks));
        out += step.load_states ? "" : ", moments and steps left out";
        out += step.load_args ? "" : ", hyper-parameters left out";
        return out +
               (step.staging == optim::LoadOptions::Staging::shadow ? ", by way of a shadow" : "");
    }
    std::string operator()(const RestartStep& step) const {
        return fmt::format("new processes: {}; everything is rebuilt from seed {}",
                           count_of(step.set_up.world_size, "rank"), step.set_up.seed);
    }
    std::string operator()(const SetStep& step) const {
        return fmt::format("group {}: {}", step.group, patch_text(step.patch));
    }
    std::string operator()(const AddGroupStep& step) const {
        std::vector<std::string> names;
        for (const ParamSpec& param : step.params) {
            names.push_back(param.name + " " + optim::to_string(param.shape));
        }
        return fmt::format("a group of {} with lr {}", join(names), step.options.lr);
    }
    std::string operator()(const InitStateStep& /*step*/) const {
        return "the optimizer makes its state, again";
    }
    std::string operator()(const EditStep& step) const {
        const std::string what = step.drop      ? "dropped"
                                 : step.unshard ? "without shard metadata"
                                 : step.shape   ? "of shape " + optim::to_string(*step.shape)
                                                : "set to " + show(*step.set);
        return fmt::format("\"{}\": {} of {} {}", step.in, join(step.keys),
                           step.group ? fmt::format("group {}", *step.group) : join(step.params),
                           what);
    }
    std::string operator()(const DamageStep& step) const {
        const std::string where = step.file.empty() ? "the file of " + step.param : step.file;
        return fmt::format("\"{}\": {} {}", step.in, where,
                           step.remove
                               ? "deleted"
                               : fmt::format("cut to {}", sim::format_bytes(*step.truncate_bytes)));
    }
    std::string operator()(const HoldStep& step) const {
        return fmt::format("somebody else takes {} of {} memory as \"{}\"", step.bytes.text,
                           sim::name_of(step.memory), step.name);
    }
    std::string operator()(const RepeatStep& step) const {
        return fmt::format("end of the last of {} rounds", step.rounds);
    }
    std::string operator()(const ReleaseStep& step) const {
        return fmt::format("\"{}\" is given back", step.name);
    }
};

std::string world_text(const ScenarioFile& file, const Run& run) {
    const SetUp& set_up = run.start;
    std::vector<std::string> params;
    for (const ParamSpec& param : set_up.params) {
        std::string placements;
        for (const optim::Placement& placement : param.placements) {
            placements += " " + optim::to_string(placement);
        }
        params.push_back(param.name + " " + optim::to_string(param.shape) + placements);
    }
    return fmt::format(
        "  {}, mesh {}; fp32 {}\n  one device of {} per rank, {}; buckets of {} "
        "elements, {} slots{}\n",
        sim::count_of(static_cast<std::uint64_t>(set_up.world_size),
                      fmt::format("{} rank", sim::name_of(set_up.world_kind))),
        optim::to_string(set_up.mesh), join(params), sim::format_bytes(set_up.capacity_bytes),
        sim::name_of(set_up.schedule), set_up.bucket_elements, set_up.slots,
        file.cells > 1 ? fmt::format(" (cell 1 of {})", file.cells) : "");
}

std::string amount_both_ways(const Expectation& expectation, const Step& step) {
    if (!expectation.amount || !expectation.amount->derived()) {
        return "";
    }
    const auto* train = std::get_if<TrainStep>(&step.action);
    const UnitValues units =
        unit_values(step.after, 0, train != nullptr ? train->none : std::vector<std::string>{});
    const auto value = expectation.amount->value(units);
    return value ? fmt::format(" = {} B on rank 0",
                               sim::with_thousands(static_cast<std::uint64_t>(*value)))
                 : "";
}

std::string fault_text(const FaultSpec& fault) {
    const char* what = fault.then == sim::FaultAction::flip      ? "flips a bit in"
                       : fault.then == sim::FaultAction::kill    ? "is killed at"
                       : fault.then == sim::FaultAction::stop    ? "stops for good at"
                       : fault.then == sim::FaultAction::delay   ? "is delayed at"
                       : fault.then == sim::FaultAction::foreign ? "throws a foreign exception at"
                       : fault.then == sim::FaultAction::late    ? "has fail late"
                       : fault.disk_error == "short"             ? "is cut short in"
                                                                 : "fails at";
    return fmt::format("; rank {} {}{} its pass {}{} of {}{}{}", fault.rank, what,
                       fault.disk_error.empty() ? "" : " (" + fault.disk_error + ")",
                       fault.each ? "each" : std::to_string(fault.nth),
                       fault.once ? "" : " and every later one", fault.at,
                       fault.over_bytes
                           ? fmt::format(" over {} B", sim::with_thousands(*fault.over_bytes))
                           : std::string(),
                       fault.file.empty() ? "" : " of " + fault.file);
}

std::string step_text(const Step& step, std::size_t number) {
    std::string out = fmt::format("  {:>2} {:<16} {}", number, step.label,
                                  std::visit(Teller{step.after}, step.action));
    if (step.fault) {
        out += fault_text(*step.fault);
    }
    for (const Expectation& expectation : step.expect) {
        if (!expectation.by_default) {
            out += fmt::format("\n{:20} then {}{}", "", expectation.text.substr(7),
                               amount_both_ways(expectation, step));
        }
    }
    return out + "\n";
}

std::string case_text(const Run& run) {
    if (run.which.fails.empty()) {
        return "  must pass  " + run.which.text + "\n";
    }
    std::vector<std::string> where;
    for (const FailSpec& fail : run.which.fails) {
        where.push_back(fail.path + (fail.found ? ", found " + show_plain(*fail.found) : ""));
    }
    return fmt::format("  must fail  {} at {}\n", run.which.text, join(where, "; "));
}

}  // namespace

std::string explain(const ScenarioFile& file) {
    const std::string issue = file.said("issue");
    std::string out = fmt::format("{}: {}{}\n  why: {}\n", file.id, file.said("name"),
                                  issue.empty() ? "" : " (" + issue + ")", file.said("why"));
    const Run& run = file.runs.front();
    out += world_text(file, run);
    for (std::size_t i = 0; i < run.steps.size(); ++i) {
        out += step_text(run.steps[i], i + 1);
    }
    for (const Expectation& expectation : run.finals) {
        out += expectation.by_default ? "" : "  end  " + expectation.text.substr(7) + "\n";
    }
    std::vector<std::string> cases;
    for (const Run& one : file.runs) {
        const std::string text = case_text(one);
        if (std::find(cases.begin(), cases.end(), text) == cases.end()) {
            cases.push_back(text);
        }
    }
    out += join(cases, "");
    std::vector<std::string> unproven;
    for (const auto& [at, path] : file.unproven) {
        unproven.push_back(path);
    }
    return out + fmt::format("  {}, {} unproven{}{}\n", sim::count_of(file.runs.size(), "run"),
                             unproven.size(), unproven.empty() ? "" : ": ", join(unproven));
}

}  // namespace swaplab::harness::report
