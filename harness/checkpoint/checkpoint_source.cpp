#include "checkpoint/corrupt.hpp"
#include "checkpoint/state_tree.hpp"

#include "swaplab/harness/tensor_reader.hpp"

#include <optional>

namespace swaplab::harness {
namespace {

using optim::Dict;
using optim::SourceEntry;
using optim::Value;

constexpr std::size_t most_group_items = 100000;

/// The part of the checkpoint under `prefix` that one entry belongs to.
struct StatePath {
    enum class Part : std::uint8_t { none, state, groups };
    Part part = Part::none;
    std::string fqn;           ///< of state
    std::string key;           ///< of state: "exp_avg"
    std::vector<Value> group;  ///< of groups: the path from the list of groups on
    std::string group_fqn;     ///< of groups in flattened form: the parameter that stands for one
};

/// "state.a.weight.exp_avg": what is before and after the last '.', without "state.".
bool split_flat(const std::string& name, const std::string& word, std::string& fqn,
                std::string& key) {
    const std::size_t last = name.rfind('.');
    if (!name.starts_with(word + ".") || last <= word.size()) {
        return false;
    }
    fqn = name.substr(word.size() + 1, last - word.size() - 1);
    key = name.substr(last + 1);
    return true;
}

/// Nested: prefix / "state" / fqn / key. Flattened: prefix / "state.fqn.key". Without a path: the
/// flattened reading of the key.
StatePath read_path(const MetadataEntry& entry, const std::string& prefix) {
    StatePath result;
    std::vector<Value> path = entry.path;
    if (path.empty() && entry.key.starts_with(prefix + ".")) {
        path = {prefix, entry.key.substr(prefix.size() + 1)};
    }
    if (path.size() < 2 || text_of_part(path[0]) != prefix) {
        return result;
    }
    const std::string second = text_of_part(path[1]);
    if (second == "state" && path.size() == 4) {
        result.part = StatePath::Part::state;
        result.fqn = text_of_part(path[2]);
        result.key = text_of_part(path[3]);
    } else if (second == "param_groups") {
        result.part = StatePath::Part::groups;
        result.group.assign(path.begin() + 2, path.end());
    } else if (split_flat(second, "state", result.fqn, result.key)) {
        result.part = StatePath::Part::state;
    } else if (std::string key; split_flat(second, "param_groups", result.group_fqn, key)) {
        result.part = StatePath::Part::groups;
        result.group = {key};
    }
    return result;
}

using GroupEntries = std::vector<std::pair<StatePath, const MetadataEntry*>>;

/// Makes the list of groups of the entries that hold their values.
class GroupAssembler {
  public:
    explicit GroupAssembler(Checkpoint& checkpoint) : checkpoint_(checkpoint) {}

    std::vector<Dict> assemble(const GroupEntries& entries) {
        for (const auto& [path, entry] : entries) {
            add(path, *entry);
        }
        finish_nested();
        join_flat_groups();
        return std::move(groups_);
    }

  private:
    Value read_group_value(const MetadataEntry& entry) {
        const TensorEntry* tensor = entry.tensor();
        if (tensor == nullptr) {
            return checkpoint_.read_value(entry.key);
        }
        const std::vector<std::byte> bytes = checkpoint_.read_tensor(entry.key);
        auto storage = optim::make_host_storage(bytes.size());
        storage->write(0, bytes);
        return optim::Tensor(tensor->dtype, tensor->global_shape, std::move(storage));
    }

    void add(const StatePath& path, const MetadataEntry& entry) {
        Value value = read_group_value(entry);
        if (!path.group_fqn.empty()) {
            const auto [place, is_new] = flat_groups_.emplace(path.group_fqn, Dict{});
            if (is_new) {
                flat_fqns_.push_back(path.group_fqn);
            }
            place->second.set(text_of_part(path.group.front()), std::move(value));
            return;
        }
        std::vector<Value> place = path.group;
        place.insert(place.begin(), Value("groups"));
        if (!nested_groups_.put(place, std::move(value))) {
            throw corrupt({checkpoint_.directory(), ".metadata", std::nullopt, entry.key},
                          "a place of its own among the groups", "one that another key occupies");
        }
    }

    void finish_nested() {
        const Value root = std::move(nested_groups_).take();
        if (const Value* groups = root.get_if<Dict>()->find("groups")) {
            const auto* list = groups->get_if<optim::List>();
            for (const Value& group : list != nullptr ? list->items : std::vector<Value>{*groups}) {
                const auto* dict = group.get_if<Dict>();
                if (dict == nullptr) {
                    throw corrupt(
                        {checkpoint_.directory(), ".metadata", std::nullopt, "param_groups"},
                        "a list of dicts", std::string(optim::kind_of(group)));
                }
                groups_.push_back(*dict);
            }
        }
    }

    /// The flattened form repeats every value for every parameter and does not tell which of them
    /// shared a group: neighbours with equal values become one.
    void join_flat_groups() {
        const Dict* neighbour = nullptr;
        for (const std::string& fqn : flat_fqns_) {
            const Dict& values = flat_groups_.at(fqn);
            if (neighbour == nullptr || !optim::same_value(values, *neighbour)) {
                groups_.push_back(values);
                groups_.back().set("params", optim::List{});
            }
            groups_.back().find("params")->get_if<optim::List>()->items.emplace_back(fqn);
            neighbour = &values;
        }
    }

    Checkpoint& checkpoint_;
    std::vector<Dict> groups_;
    TreeBuilder nested_groups_{most_group_items};
    std::vector<std::string> flat_fqns_;
    std::map<std::string, Dict> flat_groups_;
};

class CheckpointSource : public optim::StateSource {
  public:
    CheckpointSource(Checkpoint& checkpoint, const std::string& prefix, Checks checks)
        : checkpoint_(checkpoint), reader_(checkpoint, checks) {
        for (const MetadataEntry& entry : checkpoint.metadata().entries) {
            const StatePath path = read_path(entry, prefix);
            if (path.part == StatePath::Part::state) {
                add_state(path, entry.key);
            } else if (path.part == StatePath::Part::groups) {
                group_entries_.emplace_back(path, &entry);
            }
        }
    }

    [[nodiscard]] std::string name() const override { return checkpoint_.directory(); }
    [[nodiscard]] std::vector<std::string> fqns() const override { return fqns_; }
    /// Read when first asked for: a load that wants states only does not look at them.
    [[nodiscard]] const std::vector<Dict>& param_groups() const override {
        if (!groups_) {
            groups_ = GroupAssembler(checkpoint_).assemble(group_entries_);
        }
        return *groups_;
    }

    [[nodiscard]] std::vector<SourceEntry> entries(const std::string& fqn) const override {
        std::vector<SourceEntry> result;
        const auto found = state_.find(fqn);
        if (found == state_.end()) {
            return result;
        }
        for (const auto& [key, full_key] : found->second) {
            SourceEntry entry;
            entry.key = key;
            if (const TensorEntry* tensor = checkpoint_.find(full_key)->tensor()) {
                entry.is_tensor = true;
                entry.dtype = tensor->dtype;
                entry.global_shape = tensor->global_shape;
                entry.has_shard_metadata = true;
            } else {
                entry.value = checkpoint_.read_value(full_key);
            }
            result.push_back(std::move(entry));
        }
        return result;
    }

    [[nodiscard]] std::vector<optim::Mismatch> check(const std::string& fqn, const std::string& key,
                                                     const optim::Tensor& live,
                                                     int rank) const override {
        return reader_.check(full_key(fqn, key), fqn, live, rank);
    }

    void read(const std::string& fqn, const std::string& key, const optim::Tensor& live, int rank,
              std::uint64_t offset_bytes, std::span<std::byte> out) override {
        reader_.read(full_key(fqn, key), live, rank, offset_bytes, out);
    }

  private:
    using Keys = std::vector<std::pair<std::string, std::string>>;  ///< "exp_avg", checkpoint key

    void add_state(const StatePath& path, const std::string& full_key) {
        const auto [place, is_new] = state_.emplace(path.fqn, Keys{});
        if (is_new) {
            fqns_.push_back(path.fqn);
        }
        place->second.emplace_back(path.key, full_key);
    }

    [[nodiscard]] std::string full_key(const std::string& fqn, const std::string& key) const {
        const auto found = state_.find(fqn);
        if (found != state_.end()) {
            for (const auto& [name, full] : found->second) {
                if (name == key) {
                    return full;
                }
            }
        }
        return "state." + fqn + "." + key;  // names what is missing
    }

    Checkpoint& checkpoint_;
    TensorReader reader_;
    std::vector<std::string> fqns_;
    std::map<std::string, Keys> state_;
    GroupEntries group_entries_;
    mutable std::optional<std::vector<Dict>> groups_;
};

}  // namespace

std::unique_ptr<optim::StateSource> make_checkpoint_source(Checkpoint& checkpoint,
                                                           const std::string& prefix,
                                                           Checks checks) {
    return std::make_unique<CheckpointSource>(checkpoint, prefix, checks);
}

}  // namespace swaplab::harness
