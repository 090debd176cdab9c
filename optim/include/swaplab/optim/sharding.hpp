#pragma once

/// Which part of a global tensor a rank holds: DTensor's geometry, exactly.
///
/// Source: torch.distributed.tensor._utils.compute_local_shape_and_global_offset of PyTorch 2.8.
/// One Shard(d) over n ranks cuts ceil(L/n) rows per rank, so trailing ranks may be short or empty;
/// the offset of an empty shard is the global size of its dim.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace swaplab::optim {

/// Sizes (or offsets) per dim, in elements.
using Shape = std::vector<std::int64_t>;

/// Product of the sizes; 1 for a 0-dim tensor. Throws ArgumentError on overflow of int64.
[[nodiscard]] std::int64_t numel(const Shape& shape);

/// "[12,2]", "[]".
[[nodiscard]] std::string to_string(const Shape& shape);

/// What one mesh axis does to a tensor.
struct Placement {
    enum class Kind : std::uint8_t { replicate, shard, strided_shard, partial };
    Kind kind = Kind::replicate;
    /// tensor dim, for shard and strided_shard; negative counts back
    int dim = 0;
    std::int64_t split_factor = 1;  ///< for strided_shard
    friend bool operator==(const Placement&, const Placement&) = default;

    static Placement replicate() noexcept { return {}; }
    static Placement shard(int tensor_dim) noexcept { return {Kind::shard, tensor_dim, 1}; }
};

/// PyTorch's spelling: "Replicate()", "Shard(0)", "_StridedShard(0, sf=2)", "Partial(sum)".
[[nodiscard]] std::string to_string(const Placement& placement);

/// Reads that spelling, its keyword forms ("Shard(dim=0)", "_StridedShard(dim=0, split_factor=2)")
/// and the short ones of the command line: "R", "S0", "SS0/2", "P". Empty for anything else.
[[nodiscard]] std::optional<Placement> placement_from_text(std::string_view text);

/// A box of elements of a global tensor, half open in every dim.
struct Box {
    Shape offsets;
    Shape sizes;
    friend bool operator==(const Box&, const Box&) = default;
};

/// "[6:12, 0:2]"; "[]" for a 0-dim tensor.
[[nodiscard]] std::string to_string(const Box& box);

/// The common part of two boxes of equal rank; empty when they share no element. 0-dim boxes always
/// share their one element.
[[nodiscard]] std::optional<Box> intersect(const Box& a, const Box& b);

/// The mesh coordinate of `rank` in a row-major mesh over ranks 0..product-1; empty outside it.
[[nodiscard]] std::optional<std::vector<std::int64_t>> mesh_coordinate(const Shape& mesh, int rank);

/// The box that the rank at `coordinate` holds. Throws ArgumentError where PyTorch 2.8 raises
/// (strided shards with a wrong split factor, a Shard after a resolved strided pair).
[[nodiscard]] Box local_box(const Shape& global_shape, const Shape& mesh,
                            const std::vector<Placement>& placements,
                            const std::vector<std::int64_t>& coordinate);

/// How a tensor is spread over the ranks of a world. `mesh` is row-major over ranks 0..n-1 unless
/// `mesh_ranks` names them. A rank outside the mesh holds nothing.
struct ShardSpec {
    Shape global_shape;
    Shape mesh;
    std::vector<Placement> placements;  ///< one per mesh axis
    std::vector<int> mesh_ranks;        ///< row-major; empty = 0..product(mesh)-1
    friend bool operator==(const ShardSpec&, const ShardSpec&) = default;

    /// The box of `rank`; empty optional when the rank is outside the mesh.
    [[nodiscard]] std::optional<Box> box_of(int rank) const;
};

}  // namespace swaplab::optim
