#include "load/load_plan.hpp"

#include "load/step_value.hpp"

#include "swaplab/optim/refusal.hpp"
#include "swaplab/optim/saved_group.hpp"
#include "swaplab/sim/agreement.hpp"
#include "swaplab/sim/message.hpp"
#include "swaplab/sim/mutant.hpp"

#include <map>
#include <utility>

namespace swaplab::optim {
namespace {

using Step = std::optional<std::int64_t>;

const SourceEntry* find_step(const std::vector<SourceEntry>& entries) {
    for (const SourceEntry& entry : entries) {
        const bool none = !entry.is_tensor && entry.value.is_none();
        if (entry.key == "step" && !none) {
            return &entry;
        }
    }
    return nullptr;
}

/// The step of one parameter; adds to `found` when the stored number is none.
Step step_of(StateSource& source, const std::string& fqn, int rank, std::vector<Mismatch>& found) {
    const std::vector<SourceEntry> entries = source.entries(fqn);
    const SourceEntry* entry = find_step(entries);
    if (entry == nullptr) {
        return std::nullopt;
    }
    const Value value = entry->is_tensor ? read_step(source, fqn, *entry, rank) : entry->value;
    const Step step = step_from(value);
    if (!step && !SWAPLAB_MUTANT("load.step_value")) {
        found.push_back({rank, fqn, "step", step_words, repr(value), "", {}});
    }
    return step;
}

std::string step_text(const Step& step) {
    return step ? std::to_string(*step) : "no state";
}

/// What ranks that hold the same parameter say differently about its step, against the lowest.
std::vector<Mismatch> disagreements(const std::vector<std::string>& messages) {
    std::map<std::string, std::string> first_said;
    std::vector<Mismatch> found;
    for (std::size_t rank = 0; rank < messages.size(); ++rank) {
        sim::Message message(messages[rank]);
        const std::uint64_t count = message.number();
        for (std::uint64_t i = 0; i < count; ++i) {
            const std::string fqn = message.text();
            const std::string step = message.text();
            const auto [said, first] = first_said.emplace(fqn, step);
            if (!first && said->second != step) {
                found.push_back({static_cast<int>(rank),
                                 fqn,
                                 "step",
                                 said->second,
                                 step,
                                 "ranks would continue from different steps",
                                 {}});
            }
        }
    }
    return found;
}

void compare_steps(const LoadCall& call, const std::vector<Step>& steps, const ParamTable& table) {
    if (SWAPLAB_MUTANT("load.steps_agree")) {
        return;
    }
    sim::Message mine;
    mine.put(std::uint64_t{steps.size()});
    for (ParamId id = 0; id < steps.size(); ++id) {
        mine.put(table.parameter(id).name);
        mine.put(step_text(steps[id]));
    }
    std::vector<Mismatch> found = disagreements(
        call.communicator.all_gather_object(mine.bytes(), call.purpose("compare steps")));
    if (!found.empty()) {
        throw CheckpointRejected(call.operation, call.source.name(), call.communicator.size(),
                                 std::move(found));
    }
}

}  // namespace

void LoadCall::agree(const std::string& phase, const std::function<void()>& work,
                     sim::CallSite site) const {
    sim::agree(communicator, purpose(phase), work, site);
}

std::string LoadCall::purpose(const std::string& phase) const {
    return operation + " of " + source.name() + ": " + phase;
}

LoadPlan make_load_plan(const LoadCall& call, const ParamTable& table) {
    StateSource& source = call.source;
    std::vector<Mismatch> refused;
    call.agree("check", [&] { refused = check_source(source, call.options, table); });
    refuse_together(call.communicator, call.operation, source.name(), refused);
    LoadPlan plan;
    if (call.options.load_args) {
        for (std::size_t i = 0; i < source.param_groups().size(); ++i) {
            plan.groups.push_back(read_group(source.param_groups()[i], i).group);
        }
    }
    if (call.options.load_states) {
        std::vector<Mismatch> found;
        call.agree("read steps", [&] {
            for (ParamId id = 0; id < table.size(); ++id) {
                plan.steps.push_back(
                    step_of(source, table.parameter(id).name, table.rank(), found));
            }
        });
        refuse_together(call.communicator, call.operation, source.name(), found);
        compare_steps(call, plan.steps, table);
    }
    return plan;
}

void apply_groups(const LoadPlan& plan, ParamTable& table) {
    for (std::size_t i = 0; i < plan.groups.size() && !SWAPLAB_MUTANT("load.groups"); ++i) {
        table.groups()[i].options = plan.groups[i].options;
        table.groups()[i].extra = plan.groups[i].extra;
    }
}

void apply_steps(const LoadPlan& plan, ParamTable& table) {
    for (ParamId id = 0; id < plan.steps.size() && !SWAPLAB_MUTANT("load.steps"); ++id) {
        (*table.steps())[id] = plan.steps[id].value_or(0);
    }
}

}  // namespace swaplab::optim
