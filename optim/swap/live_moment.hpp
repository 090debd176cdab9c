#pragma once

/// The live form of one moment of one parameter: pieces of arenas seen as one tensor.

#include "swaplab/optim/tensor.hpp"
#include "swaplab/sim/buffer.hpp"

#include <cstdint>
#include <memory>
#include <vector>

namespace swaplab::optim {

/// `bytes` of `arena` from `arena_offset_bytes` on.
struct ArenaPiece {
    std::shared_ptr<sim::PinnedBuffer> arena;
    std::uint64_t arena_offset_bytes = 0;
    std::uint64_t bytes = 0;
};

/// A storage over `pieces` in order. Every read and write announces host access to the device.
[[nodiscard]] std::shared_ptr<TensorStorage> make_piecewise_storage(std::vector<ArenaPiece> pieces);

}  // namespace swaplab::optim
