#pragma once

/// Do the chunks of a tensor cover it exactly once?

#include "swaplab/harness/dcp_metadata.hpp"

#include <string>
#include <vector>

namespace swaplab::harness {

/// What is wrong with the boxes of a tensor's chunks.
struct TilingFault {
    enum class Kind : std::uint8_t { out_of_bounds, overlap, gap };
    Kind kind = Kind::gap;
    /// The chunks concerned: one for out_of_bounds, two for overlap, none for gap.
    std::vector<std::size_t> chunks;
    std::int64_t elements = 0;  ///< covered by no chunk, for gap
};

/// Out-of-bounds chunks first, then the first overlap found, then, when there is neither, a gap.
/// Empty when the chunks tile the tensor. Chunks without elements only have to be in bounds.
/// Source: torch.distributed.checkpoint.default_planner._validate_global_plan of PyTorch 2.8, which
/// skips 0-dim tensors; here they must have exactly one chunk.
[[nodiscard]] std::vector<TilingFault> tiling_faults(const TensorEntry& entry);

/// "chunk [6:7, 0:2] overlaps chunk [6:8, 0:2]", ...
[[nodiscard]] std::string describe(const TilingFault& fault, const TensorEntry& entry);

}  // namespace swaplab::harness
