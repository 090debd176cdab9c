#pragma once

/// Who holds which part of a tensor, as values.

#include "inspect/coverage.hpp"

#include "swaplab/optim/sharding.hpp"

#include <string_view>
#include <vector>

namespace swaplab::harness {

struct ShardRow {
    int rank = 0;
    std::vector<std::int64_t> coordinate;  ///< in the mesh
    optim::Box box;
};

struct ShardTable {
    optim::ShardSpec spec;
    std::vector<ShardRow> rows;  ///< one per rank
    Coverage coverage;
};

/// Reads "5,3" (empty: 0-dim), "2x2" and "S0,S0" and cuts. Throws ArgumentError with field
/// "argument" for text that says nothing of the kind, and where PyTorch refuses.
[[nodiscard]] ShardTable make_shard_table(std::string_view shape, std::string_view mesh,
                                          std::string_view placements);

}  // namespace swaplab::harness
