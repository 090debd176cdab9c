#include "compare.hpp"
#include "hex.hpp"
#include "judge_shard.hpp"

#include "swaplab/harness/checkpoint.hpp"

namespace swaplab::oracle {
namespace {

using harness::Checkpoint;
using harness::MetadataEntry;

Floats read_floats(Checkpoint& checkpoint, const std::string& key) {
    const auto bytes = checkpoint.read_tensor(key);
    Floats values(bytes.size() / sizeof(float));
    std::copy(bytes.begin(), bytes.end(), std::as_writable_bytes(std::span(values)).begin());
    return values;
}

optim::Box box_of(const ShardCase& one, const std::string& name, std::size_t rank) {
    return optim::ShardSpec{
        shape_of(one.model, name), {one.model.world}, {optim::Placement::shard(0)}, {}}
        .box_of(static_cast<int>(rank))
        .value();
}

std::string compare_boxes(const ShardCase& one, std::size_t rank, const Value& expected) {
    if (members(expected).size() != one.model.shapes.size()) {
        return "local parts of other parameters";
    }
    for (const auto& [name, part] : members(expected)) {
        require_keys(part, {"offset", "size"});
        const optim::Box box = box_of(one, text(name), rank);
        if (box != optim::Box{shape(at(part, "offset")), shape(at(part, "size"))}) {
            return "local part of " + text(name) + " is " + optim::to_string(box);
        }
    }
    return "";
}

/// Elements of all moments that no rank's surviving shard holds, and of all moments.
std::pair<std::int64_t, std::int64_t> count_elements(const ShardCase& one, const SavedRun& saved,
                                                     const Survivors& survivors) {
    std::int64_t lost = 0;
    std::int64_t all = 0;
    for (const auto& [name, leaves] : saved.at_n.at(0).used) {
        for (const auto& leaf : leaves) {
            all += optim::numel(shape_of(one.model, name));
            const auto surviving = survivors.find(name + "." + leaf.first);
            for (std::size_t rank = 0; rank < saved.at_n.size(); ++rank) {
                if (surviving != survivors.end() &&
                    !surviving->second.contains(static_cast<std::int64_t>(rank))) {
                    lost += optim::numel(box_of(one, name, rank).sizes);
                }
            }
        }
    }
    return {lost, all};
}

std::string compare_survivors(const Survivors& found, const Value& expected) {
    Survivors theirs;
    for (const auto& [name, ranks] : members(expected)) {
        std::set<std::int64_t>& own = theirs[text(name)];
        for (const Value& rank : items(ranks)) {
            own.insert(integer(rank));
        }
    }
    for (const auto& [name, ranks] : found) {
        if (!theirs.contains(name) || theirs.at(name) != ranks) {
            return fmt::format("survivors of {}: found {} ranks, first {}", name, ranks.size(),
                               ranks.empty() ? -1 : *ranks.begin());
        }
    }
    return found.size() == theirs.size() ? "" : "survivors of a moment that is complete";
}

std::string compare_saved_steps(const ShardCase& one, Checkpoint& checkpoint,
                                const Value& expected) {
    if (members(expected).size() != one.model.shapes.size()) {
        return "saved steps of other parameters";
    }
    for (const auto& [name, bits] : members(expected)) {
        const std::string found =
            hex_of(read_floats(checkpoint, "optimizer.state." + text(name) + ".step"));
        if (found != text(bits)) {
            return fmt::format("saved step of {} expected {}, found {}", text(name), text(bits),
                               found);
        }
    }
    return "";
}

std::string name_of_item(const std::string& key, const Shape* offset) {
    if (offset == nullptr) {
        return key + "@None";
    }
    optim::Tuple tuple;
    for (const std::int64_t dim : *offset) {
        tuple.items.emplace_back(dim);
    }
    return key + "@" + optim::repr(tuple);
}

/// Shape and bits, or the repr of an object, of every item. Chunks are whole rows.
std::map<std::string, std::string> content_of(Checkpoint& checkpoint) {
    std::map<std::string, std::string> content;
    for (const MetadataEntry& entry : checkpoint.metadata().entries) {
        const std::string& key = entry.key;
        const auto* tensor = entry.tensor();
        if (tensor == nullptr) {
            content[name_of_item(key, nullptr)] = optim::repr(checkpoint.read_value(key));
            continue;
        }
        const std::string bits = hex_of(read_floats(checkpoint, key));
        for (const auto& chunk : tensor->chunks) {
            const Shape& sizes = chunk.box.sizes;
            const std::int64_t elements = optim::numel(sizes);
            const std::int64_t before =
                sizes.empty() || elements == 0 ? 0 : chunk.box.offsets[0] * (elements / sizes[0]);
            content[name_of_item(key, &chunk.box.offsets)] =
                optim::to_string(sizes) + bits.substr(static_cast<std::size_t>(before) * 8,
                                                      static_cast<std::size_t>(elements) * 8);
        }
    }
    return content;
}

}  // namespace

Survivors survivors_of(const ShardCase& one, const SavedRun& saved) {
    Checkpoint checkpoint(*saved.storage, "saved");
    Survivors survivors;
    for (const auto& [name, leaves] : saved.at_n.at(0).used) {
        for (const auto& leaf : leaves) {
            const std::string key = "optimizer.state." + name + "." + leaf.first;
            const MetadataEntry* entry = checkpoint.metadata().find(key);
            if (entry == nullptr || entry->tensor() == nullptr ||
                entry->tensor()->global_shape == shape_of(one.model, name)) {
                continue;
            }
            const Floats stored = read_floats(checkpoint, key);
            std::set<std::int64_t>& ranks = survivors[name + "." + leaf.first];
            for (std::size_t rank = 0; rank < saved.at_n.size(); ++rank) {
                if (box_of(one, name, rank).sizes == entry->tensor()->global_shape &&
                    same_floats(stored, saved.at_n[rank].used.at(name).at(leaf.first))) {
                    ranks.insert(static_cast<std::int64_t>(rank));
                }
            }
        }
    }
    return survivors;
}

std::string compare_rank(const ShardCase& one, const SavedRun& saved, std::size_t rank,
                         const Value& expected) {
    require_keys(expected,
                 {"rank", "local", "params_at_N", "moments_at_N", "step", "uninterrupted"});
    const Entry& found = saved.at_n.at(rank);
    std::string problem =
        first_of({unequal("rank", integer(at(expected, "rank")), static_cast<std::int64_t>(rank)),
                  compare_boxes(one, rank, at(expected, "local")),
                  params_apart(found.params, read_values(at(expected, "params_at_N"))),
                  moments_apart(found.used, read_moments(at(expected, "moments_at_N"))),
                  steps_apart(found.steps, at(expected, "step"))});
    const auto& trace = saved.uninterrupted.at(rank);
    const auto& after = items(at(expected, "uninterrupted"), trace.size());
    for (std::size_t k = 0; k < after.size() && problem.empty(); ++k) {
        require_keys(after[k], {"p", "used_by_step", "step"});
        problem =
            first_of({params_apart(trace[k].params, read_values(at(after[k], "p"))),
                      moments_apart(trace[k].used, read_moments(at(after[k], "used_by_step"))),
                      steps_apart(trace[k].steps, at(after[k], "step"))});
    }
    return problem;
}

std::string compare_saved(const ShardCase& one, const SavedRun& saved, const Value& expected) {
    Checkpoint checkpoint(*saved.storage, "saved");
    const Survivors survivors = survivors_of(one, saved);
    const auto [lost, elements] = count_elements(one, saved, survivors);
    return first_of(
        {compare_survivors(survivors, at(expected, "survivors")),
         unequal("lost elements", integer(at(expected, "lost_elements_total")), lost),
         unequal("moment elements", integer(at(expected, "moment_elements_total")), elements),
         compare_saved_steps(one, checkpoint, at(expected, "saved_step"))});
}

std::vector<std::string> different_items(const SavedRun& a, const SavedRun& b,
                                         const std::string& key_prefix) {
    Checkpoint first(*a.storage, "saved");
    Checkpoint second(*b.storage, "saved");
    const auto mine = content_of(first);
    const auto theirs = content_of(second);
    std::set<std::string> different;
    for (const auto* side : {&mine, &theirs}) {
        const auto& other = side == &mine ? theirs : mine;
        for (const auto& [name, bits] : *side) {
            const auto found = other.find(name);
            if (name.starts_with(key_prefix) && (found == other.end() || found->second != bits)) {
                different.insert(name);
            }
        }
    }
    return {different.begin(), different.end()};
}

}  // namespace swaplab::oracle
