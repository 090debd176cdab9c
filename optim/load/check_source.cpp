#include "load/load_plan.hpp"
#include "load/step_value.hpp"

#include "swaplab/optim/saved_group.hpp"
#include "swaplab/sim/mutant.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

namespace swaplab::optim {
namespace {

using Entries = std::vector<SourceEntry>;

/// Without None leaves: they mean that the key is not there.
Entries present_entries(const StateSource& source, const std::string& fqn) {
    Entries entries = source.entries(fqn);
    std::erase_if(entries, [](const SourceEntry& e) { return !e.is_tensor && e.value.is_none(); });
    return entries;
}

const SourceEntry* find(const Entries& entries, const std::string& key) {
    const auto found = std::find_if(entries.begin(), entries.end(),
                                    [&](const SourceEntry& entry) { return entry.key == key; });
    return found == entries.end() ? nullptr : &*found;
}

std::string describe(const SourceEntry& entry) {
    return entry.is_tensor
               ? fmt::format("{} {}", sim::name_of(entry.dtype), to_string(entry.global_shape))
               : repr(entry.value);
}

class SourceCheck {
  public:
    SourceCheck(const StateSource& source, const LoadOptions& options, const ParamTable& table)
        : source_(source), options_(options), table_(table) {}

    std::vector<Mismatch> run() {
        if (options_.load_states || options_.load_args) {
            groups();
        }
        if (options_.load_states) {
            for (ParamId id = 0; id < table_.size(); ++id) {
                state_of(id);
            }
            unknown_parameters();
        }
        return std::move(found_);
    }

  private:
    void refuse(const std::string& parameter, const std::string& key, const std::string& expected,
                const std::string& found, const std::string& detail = "") {
        found_.push_back({table_.rank(), parameter, key, expected, found, detail, {}});
    }

    // --- groups -------------------------------------------------------------------------------

    void groups() {
        const std::vector<Dict>& saved = source_.param_groups();
        if (saved.empty() && !options_.load_args) {
            return;
        }
        if (options_.load_args && saved.size() != table_.groups().size() &&
            !SWAPLAB_MUTANT("load.group_count")) {
            refuse("", "param_groups", fmt::format("{} groups", table_.groups().size()),
                   fmt::format("{} groups", saved.size()));
            return;
        }
        std::map<std::string, std::size_t> saved_group_of;
        for (std::size_t i = 0; i < saved.size(); ++i) {
            group(read_group(saved[i], i), i, saved_group_of);
        }
        members(saved_group_of);
    }

    void group(SavedGroup saved, std::size_t index,
               std::map<std::string, std::size_t>& saved_group_of) {
        for (Mismatch& mismatch : saved.mismatches) {
            mismatch.rank = table_.rank();
            found_.push_back(std::move(mismatch));
        }
        for (const std::string& name : saved.names) {
            if (!saved_group_of.emplace(name, index).second) {
                refuse(name, "param_groups", "once", "twice");
            }
        }
    }

    /// Each parameter in the group of the same number, and none that only one side knows. Without
    /// load_args it does not matter which group it is in.
    void members(const std::map<std::string, std::size_t>& saved_group_of) {
        std::map<std::string, std::size_t> live_group_of;
        for (ParamId id = 0; id < table_.size(); ++id) {
            live_group_of.emplace(table_.parameter(id).name, table_.group_of(id));
        }
        const auto text = [](const auto& groups, const std::string& name) -> std::string {
            const auto found = groups.find(name);
            return found == groups.end() ? "no group" : fmt::format("group {}", found->second);
        };
        std::set<std::string> names;
        for (const auto& [name, index] : live_group_of) {
            names.insert(name);
        }
        for (const auto& [name, index] : saved_group_of) {
            names.insert(name);
        }
        for (const std::string& name : names) {
            const bool both = live_group_of.contains(name) && saved_group_of.contains(name);
            const std::string live = text(live_group_of, name);
            const std::string saved = text(saved_group_of, name);
            if (live != saved && (options_.load_args || !both) &&
                !SWAPLAB_MUTANT("load.group_members")) {
                refuse(name, "param_groups", live, saved);
            }
        }
        amsgrad();
    }

    void amsgrad() {
        if (!options_.load_args) {
            return;
        }
        for (ParamId id = 0; id < table_.size(); ++id) {
            const std::size_t index = table_.group_of(id);
            const bool first = id == 0 || table_.group_of(id - 1) != index;
            if (!first || index >= source_.param_groups().size()) {
                continue;
            }
            const Value* saved = source_.param_groups()[index].find("amsgrad");
            const auto* flag = saved == nullptr ? nullptr : saved->get_if<bool>();
            const bool value = flag != nullptr && *flag;
            if (value != table_.amsgrad(id) && !SWAPLAB_MUTANT("load.amsgrad")) {
                refuse("", fmt::format("param_groups.{}.amsgrad", index), repr(table_.amsgrad(id)),
                       repr(value), "moments exist for the live setting only");
            }
        }
    }

    // --- state --------------------------------------------------------------------------------

    void state_of(ParamId id) {
        const std::string& fqn = table_.parameter(id).name;
        const Entries entries = present_entries(source_, fqn);
        if (entries.empty()) {
            return;  // never stepped before the save
        }
        std::vector<std::string> keys = table_.moment_keys(id);
        for (const std::string& key : keys) {
            moment(id, key, find(entries, key));
        }
        step(fqn, find(entries, "step"));
        keys.emplace_back("step");
        for (const SourceEntry& entry : entries) {
            if (std::find(keys.begin(), keys.end(), entry.key) == keys.end() &&
                !SWAPLAB_MUTANT("load.unexpected_key")) {
                refuse(fqn, entry.key, "missing", describe(entry),
                       entry.key == "max_exp_avg_sq" ? "amsgrad is off here"
                                                     : "a key that AdamW does not have");
            }
        }
    }

    void moment(ParamId id, const std::string& key, const SourceEntry* entry) {
        const Parameter& parameter = table_.parameter(id);
        const Shape& shape = parameter.data.global_shape();
        const std::string expected = fmt::format("float32 {}", to_string(shape));
        if (entry == nullptr) {
            if (!SWAPLAB_MUTANT("load.missing_key")) {
                refuse(parameter.name, key, expected, "missing", "half of a state is no state");
            }
            return;
        }
        if (!entry->is_tensor) {
            refuse(parameter.name, key, expected, repr(entry->value));
            return;
        }
        std::vector<Mismatch> of_source =
            source_.check(parameter.name, key, parameter.data, table_.rank());
        if (!of_source.empty()) {
            found_.insert(found_.end(), of_source.begin(), of_source.end());
        } else if (entry->dtype != DType::float32 && !SWAPLAB_MUTANT("load.dtype")) {
            refuse(parameter.name, key, "float32", std::string(sim::name_of(entry->dtype)));
        } else if (entry->global_shape != shape && !SWAPLAB_MUTANT("load.global_shape")) {
            refuse(parameter.name, key, to_string(shape), to_string(entry->global_shape));
        }
    }

    void step(const std::string& fqn, const SourceEntry* entry) {
        if (entry == nullptr) {
            if (!SWAPLAB_MUTANT("load.missing_step")) {
                refuse(fqn, "step", "a step", "missing", "half of a state is no state");
            }
            return;
        }
        const bool readable =
            entry->is_tensor ? is_step_tensor(*entry) : step_from(entry->value).has_value();
        if (!readable && !SWAPLAB_MUTANT("load.step_kind")) {
            refuse(fqn, "step", step_words, describe(*entry));
        }
    }

    void unknown_parameters() {
        std::set<std::string> live;
        for (ParamId id = 0; id < table_.size(); ++id) {
            live.insert(table_.parameter(id).name);
        }
        for (const std::string& fqn : source_.fqns()) {
            if (!live.contains(fqn) && !present_entries(source_, fqn).empty() &&
                !SWAPLAB_MUTANT("load.unknown_parameter")) {
                refuse(fqn, "state", "missing", "present", "this optimizer has no such parameter");
            }
        }
    }

    const StateSource& source_;
    const LoadOptions& options_;
    const ParamTable& table_;
    std::vector<Mismatch> found_;
};

}  // namespace

std::vector<Mismatch> check_source(const StateSource& source, const LoadOptions& options,
                                   const ParamTable& table) {
    return SourceCheck(source, options, table).run();
}

}  // namespace swaplab::optim
