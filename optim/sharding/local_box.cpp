#include "swaplab/optim/sharding.hpp"
#include "swaplab/sim/error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace swaplab::optim {
namespace {

using Kind = Placement::Kind;

std::string describe(const std::vector<Placement>& placements) {
    std::string text = "[";
    for (const Placement& placement : placements) {
        text += (text.size() > 1 ? ", " : "") + to_string(placement);
    }
    return text + "]";
}

[[noreturn]] void refuse(const std::string& why, const std::vector<Placement>& placements) {
    throw sim::ArgumentError(why + " in " + describe(placements),
                             {{"placements", describe(placements)}});
}

/// Placements with non-negative dims.
std::vector<Placement> normalised(std::vector<Placement> placements, std::size_t ndim) {
    const std::vector<Placement> given = placements;
    for (Placement& placement : placements) {
        if (placement.kind != Kind::shard && placement.kind != Kind::strided_shard) {
            continue;
        }
        const int dim = placement.dim < 0 ? placement.dim + static_cast<int>(ndim) : placement.dim;
        if (dim < 0 || dim >= static_cast<int>(ndim)) {
            refuse(
                fmt::format("sharding dim {} is not a dim of a {}-dim tensor", placement.dim, ndim),
                given);
        }
        placement.dim = dim;
    }
    return placements;
}

/// Mesh axes in the order in which they cut: a strided shard waits for the plain shard of its dim
/// that follows it, and cuts after that one, innermost first. One that no shard follows never cuts.
std::vector<std::size_t> cutting_order(const std::vector<Placement>& placements,
                                       const Shape& mesh) {
    std::vector<std::size_t> order;
    std::vector<std::size_t> deferred;
    std::vector<int> ended_dims;
    for (std::size_t axis = 0; axis < placements.size(); ++axis) {
        const Placement& placement = placements[axis];
        if (placement.kind == Kind::strided_shard) {
            deferred.push_back(axis);
        }
        if (placement.kind != Kind::shard) {
            continue;
        }
        if (std::find(ended_dims.begin(), ended_dims.end(), placement.dim) != ended_dims.end()) {
            refuse(
                fmt::format("{} after the strided part of its dim has ended", to_string(placement)),
                placements);
        }
        order.push_back(axis);
        std::int64_t applied = mesh[axis];
        for (std::size_t i = deferred.size(); i-- > 0;) {
            const std::size_t strided = deferred[i];
            if (placements[strided].dim != placement.dim) {
                continue;
            }
            if (placements[strided].split_factor != applied) {
                refuse(fmt::format("split factor {} is not the {} ranks that already cut dim {}",
                                   placements[strided].split_factor, applied, placement.dim),
                       placements);
            }
            applied *= mesh[strided];
            order.push_back(strided);
            deferred.erase(deferred.begin() + static_cast<std::ptrdiff_t>(i));
            ended_dims.push_back(placement.dim);
        }
    }
    return order;
}

/// Offset and size of part `index` of `length` cut into `count` parts of ceil(length/count).
std::pair<std::int64_t, std::int64_t> chunk_of(std::int64_t length, std::int64_t count,
                                               std::int64_t index) {
    const std::int64_t chunk = length / count + (length % count != 0 ? 1 : 0);
    const std::int64_t first = chunk != 0 && index > length / chunk ? length : chunk * index;
    return {first, std::min(chunk, length - first)};
}

}  // namespace

Box local_box(const Shape& global_shape, const Shape& mesh,
              const std::vector<Placement>& placements,
              const std::vector<std::int64_t>& coordinate) {
    if (placements.size() != mesh.size() || coordinate.size() != mesh.size()) {
        refuse(fmt::format("expected one placement and one coordinate per mesh dim, found {} and "
                           "{} for {} mesh dims",
                           placements.size(), coordinate.size(), mesh.size()),
               placements);
    }
    const std::vector<Placement> cuts = normalised(placements, global_shape.size());
    Box box{Shape(global_shape.size(), 0), global_shape};
    for (const std::size_t axis : cutting_order(cuts, mesh)) {
        const auto dim = static_cast<std::size_t>(cuts[axis].dim);
        const auto [first, size] = chunk_of(box.sizes[dim], mesh[axis], coordinate[axis]);
        box.sizes[dim] = size;
        // All empty shards of a dim share one offset that no element has, so that writers see one.
        box.offsets[dim] = size == 0 ? global_shape[dim] : box.offsets[dim] + first;
    }
    return box;
}

std::optional<std::vector<std::int64_t>> mesh_coordinate(const Shape& mesh, int rank) {
    if (rank < 0 || rank >= numel(mesh)) {
        return std::nullopt;
    }
    std::vector<std::int64_t> coordinate(mesh.size());
    std::int64_t rest = rank;
    for (std::size_t axis = mesh.size(); axis-- > 0;) {
        coordinate[axis] = rest % mesh[axis];
        rest /= mesh[axis];
    }
    return coordinate;
}

std::optional<Box> ShardSpec::box_of(int rank) const {
    int position = rank;
    if (!mesh_ranks.empty()) {
        const auto found = std::find(mesh_ranks.begin(), mesh_ranks.end(), rank);
        position = found == mesh_ranks.end() ? -1 : static_cast<int>(found - mesh_ranks.begin());
    }
    const auto coordinate = mesh_coordinate(mesh, position);
    if (!coordinate) {
        return std::nullopt;
    }
    return local_box(global_shape, mesh, placements, *coordinate);
}

}  // namespace swaplab::optim
