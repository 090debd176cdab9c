#include "checkpoint/tiling.hpp"

#include "swaplab/sim/mutant.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace swaplab::harness {
namespace {

bool is_inside(const Box& box, const Shape& shape) {
    for (std::size_t dim = 0; dim < shape.size(); ++dim) {
        if (box.offsets[dim] < 0 || box.sizes[dim] < 0 ||
            box.offsets[dim] + box.sizes[dim] > shape[dim]) {
            return false;
        }
    }
    return true;
}

/// The dim along which the chunks begin at most different places: sweeping along it leaves the
/// fewest pairs to compare.
std::size_t sweep_dim(const TensorEntry& entry) {
    std::size_t best = 0;
    std::size_t most = 0;
    for (std::size_t dim = 0; dim < entry.global_shape.size(); ++dim) {
        std::set<std::int64_t> offsets;
        for (const StoredChunk& chunk : entry.chunks) {
            offsets.insert(chunk.box.offsets[dim]);
        }
        if (offsets.size() > most) {
            most = offsets.size();
            best = dim;
        }
    }
    return best;
}

std::optional<TilingFault> find_overlap(const TensorEntry& entry,
                                        const std::vector<std::size_t>& filled) {
    if (entry.global_shape.empty()) {
        return filled.size() < 2 ? std::nullopt
                                 : std::optional(TilingFault{
                                       TilingFault::Kind::overlap, {filled[0], filled[1]}, 0});
    }
    const std::size_t dim = sweep_dim(entry);
    std::vector<std::size_t> order = filled;
    const auto begin_of = [&](std::size_t i) { return entry.chunks[i].box.offsets[dim]; };
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return begin_of(a) < begin_of(b); });
    for (std::size_t i = 0; i < order.size(); ++i) {
        const Box& box = entry.chunks[order[i]].box;
        const std::int64_t end = box.offsets[dim] + box.sizes[dim];
        for (std::size_t j = i + 1; j < order.size() && begin_of(order[j]) < end; ++j) {
            if (optim::intersect(box, entry.chunks[order[j]].box)) {
                return TilingFault{TilingFault::Kind::overlap, {order[i], order[j]}, 0};
            }
        }
    }
    return std::nullopt;
}

}  // namespace

std::vector<TilingFault> tiling_faults(const TensorEntry& entry) {
    std::vector<TilingFault> faults;
    std::vector<std::size_t> filled;
    for (std::size_t i = 0; i < entry.chunks.size(); ++i) {
        if (!is_inside(entry.chunks[i].box, entry.global_shape) &&
            !SWAPLAB_MUTANT("plan.no_bounds_check")) {
            faults.push_back({TilingFault::Kind::out_of_bounds, {i}, 0});
        } else if (optim::numel(entry.chunks[i].box.sizes) > 0) {
            filled.push_back(i);
        }
    }
    if (!faults.empty()) {
        return faults;
    }
    if (auto overlap = find_overlap(entry, filled);
        overlap && !SWAPLAB_MUTANT("plan.no_overlap_check")) {
        faults.push_back(std::move(*overlap));
        return faults;
    }
    std::int64_t missing = optim::numel(entry.global_shape);
    for (const std::size_t i : filled) {
        missing -= optim::numel(entry.chunks[i].box.sizes);
    }
    if (missing > 0 && !SWAPLAB_MUTANT("plan.no_volume_check")) {
        faults.push_back({TilingFault::Kind::gap, {}, missing});
    }
    return faults;
}

std::string describe(const TilingFault& fault, const TensorEntry& entry) {
    const auto box = [&](std::size_t i) {
        return optim::to_string(entry.chunks[fault.chunks[i]].box);
    };
    const std::string shape = optim::to_string(entry.global_shape);
    switch (fault.kind) {
        case TilingFault::Kind::out_of_bounds:
            return fmt::format("chunk {} lies outside {}", box(0), shape);
        case TilingFault::Kind::overlap:
            return fmt::format("chunks {} and {} overlap", box(0), box(1));
        case TilingFault::Kind::gap:
            break;
    }
    return fmt::format("{} of {} elements of {} are in no chunk", fault.elements,
                       optim::numel(entry.global_shape), shape);
}

}  // namespace swaplab::harness
