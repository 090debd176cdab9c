#include "checkpoint/planner.hpp"
#include "checkpoint/rank_set.hpp"
#include "checkpoint/tiling.hpp"

#include "swaplab/sim/mutant.hpp"

#include <fmt/format.h>

#include <map>
#include <set>

namespace swaplab::harness {
namespace {

using Kind = WriteItem::Kind;

/// What PyTorch's MetadataIndex compares.
using ItemIdentity = std::pair<std::string, std::optional<Shape>>;

ItemIdentity identity_of(const WriteItem& item) {
    return {item.key,
            item.kind == Kind::bytes ? std::nullopt : std::optional<Shape>(item.box.offsets)};
}

/// What an item adds to its writer's load: the size of the whole tensor, even of a part.
std::uint64_t load_of(const WriteItem& item) {
    if (item.kind == Kind::bytes) {
        return 1;
    }
    const auto elements = static_cast<std::uint64_t>(optim::numel(item.global_shape));
    return std::max<std::uint64_t>(elements * sim::size_of(item.dtype), 1);
}

PlanError plan_error(std::string_view pytorch_error, const std::string& key,
                     const std::string& text) {
    return PlanError(text, {{"pytorch_error", std::string(pytorch_error)}, {"key", key}});
}

/// Which ranks offer an item, in order of first appearance of the items.
struct Offers {
    std::vector<std::vector<std::pair<int, std::size_t>>> items;  ///< rank, position

    explicit Offers(const std::vector<LocalPlan>& plans) {
        std::map<ItemIdentity, std::size_t> index;
        for (std::size_t rank = 0; rank < plans.size(); ++rank) {
            for (std::size_t position = 0; position < plans[rank].size(); ++position) {
                const auto [found, is_new] =
                    index.emplace(identity_of(plans[rank][position]), items.size());
                if (is_new) {
                    items.emplace_back();
                }
                items[found->second].emplace_back(static_cast<int>(rank), position);
            }
        }
    }
};

int choose_writer(const std::vector<std::pair<int, std::size_t>>& offers,
                  const std::vector<std::uint64_t>& loads, bool to_lowest_rank) {
    std::vector<int> ranks;
    ranks.reserve(offers.size());
    for (const auto& offer : offers) {
        ranks.push_back(offer.first);
    }
    if (to_lowest_rank) {
        return ranks.front();
    }
    const std::vector<int> order = set_order(ranks);
    int best = order.front();
    for (const int rank : order) {
        if (loads[static_cast<std::size_t>(rank)] < loads[static_cast<std::size_t>(best)]) {
            best = rank;
        }
    }
    return best;
}

MetadataEntry new_entry(const WriteItem& item) {
    MetadataEntry entry;
    entry.key = item.key;
    if (item.kind == Kind::bytes) {
        entry.data = BytesEntry{};
        return entry;
    }
    TensorEntry tensor;
    tensor.dtype = item.dtype;
    tensor.global_shape = item.global_shape;
    tensor.pin_memory = item.pin_memory;
    entry.data = std::move(tensor);
    return entry;
}

void validate(const std::vector<MetadataEntry>& entries) {
    for (const MetadataEntry& entry : entries) {
        if (entry.tensor() == nullptr) {
            continue;
        }
        const std::vector<TilingFault> faults = tiling_faults(*entry.tensor());
        if (!faults.empty()) {
            throw plan_error("ValueError", entry.key,
                             fmt::format("the ranks' parts of {} do not make up the tensor: {}; "
                                         "give every rank the same global shape and mesh",
                                         entry.key, describe(faults.front(), *entry.tensor())));
        }
    }
}

}  // namespace

LocalPlan make_local_plan(const std::vector<Leaf>& leaves, int rank) {
    LocalPlan plan;
    for (std::size_t i = 0; i < leaves.size(); ++i) {
        const Leaf& leaf = leaves[i];
        WriteItem item;
        item.leaf = i;
        item.key = leaf.key;
        item.path = leaf.path;
        if (const auto* tensor = leaf.value.get_if<optim::Tensor>()) {
            const Shape& local = tensor->local_shape();
            std::optional<Box> box = Box{Shape(local.size(), 0), local};
            if (tensor->shard()) {
                box = tensor->shard()->box_of(rank);
            }
            if (!box) {
                continue;
            }
            item.kind = tensor->shard() ? Kind::shard : Kind::tensor;
            item.box = std::move(*box);
            item.global_shape = tensor->global_shape();
            item.dtype = tensor->dtype();
            item.pin_memory = tensor->memory() == sim::MemoryKind::pinned;
        }
        plan.push_back(std::move(item));
    }
    return plan;
}

std::vector<std::vector<std::size_t>> deduplicate(const std::vector<LocalPlan>& plans,
                                                  bool to_lowest_rank) {
    std::vector<std::vector<bool>> keeps;
    keeps.reserve(plans.size());
    for (const LocalPlan& plan : plans) {
        keeps.emplace_back(plan.size(), false);
    }
    std::vector<std::uint64_t> loads(plans.size(), 0);
    for (const auto& offers : Offers(plans).items) {
        const int writer = choose_writer(offers, loads, to_lowest_rank);
        for (const auto& [rank, position] : offers) {
            const auto at = static_cast<std::size_t>(rank);
            if (rank == writer) {
                keeps[at][position] = true;
                // PyTorch counts the last rank's item, whoever writes; sizes differ when plain
                // tensors were parts in truth.
                const auto& [last_rank, last_position] = offers.back();
                loads[at] += load_of(plans[static_cast<std::size_t>(last_rank)][last_position]);
            } else if (SWAPLAB_MUTANT("plan.no_dedup")) {
                keeps[at][position] = true;
            }
        }
    }
    std::vector<std::vector<std::size_t>> kept(plans.size());
    for (std::size_t rank = 0; rank < plans.size(); ++rank) {
        for (std::size_t position = 0; position < plans[rank].size(); ++position) {
            if (keeps[rank][position]) {
                kept[rank].push_back(position);
            }
        }
    }
    return kept;
}

GlobalPlan make_global_plan(const std::vector<LocalPlan>& plans,
                            const std::vector<std::vector<std::size_t>>& kept) {
    GlobalPlan plan;
    std::map<std::string, std::size_t> index;
    for (std::size_t rank = 0; rank < plans.size(); ++rank) {
        plan.by_rank.emplace_back();
        for (const std::size_t position : kept[rank]) {
            const WriteItem& item = plans[rank][position];
            const auto [found, is_new] = index.emplace(item.key, plan.entries.size());
            if (is_new) {
                plan.entries.push_back(new_entry(item));
            }
            MetadataEntry& entry = plan.entries[found->second];
            auto* tensor = std::get_if<TensorEntry>(&entry.data);
            if (!is_new && (item.kind != Kind::shard || tensor == nullptr)) {
                throw plan_error("AssertionError", item.key,
                                 fmt::format("{} is a part of a tensor on one rank and a plain "
                                             "tensor or value on another; save it the same way "
                                             "everywhere",
                                             item.key));
            }
            PlannedItem planned{position, std::nullopt, found->second};
            if (tensor != nullptr) {
                planned.index_hint = static_cast<std::int64_t>(tensor->chunks.size());
                tensor->chunks.push_back({item.box, std::nullopt, planned.index_hint});
            }
            plan.by_rank.back().push_back(planned);
        }
    }
    std::set<std::string> ordered;
    for (const LocalPlan& local : plans) {
        for (const WriteItem& item : local) {
            MetadataEntry& entry = plan.entries[index.at(item.key)];
            if (ordered.insert(item.key).second) {
                plan.state_dict_order.push_back(item.key);
                entry.path = item.path;
            }
        }
    }
    if (!SWAPLAB_MUTANT("plan.no_validation")) {
        validate(plan.entries);
    }
    return plan;
}

}  // namespace swaplab::harness
