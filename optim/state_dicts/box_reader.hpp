#pragma once

/// Cuts a box out of a whole row-major tensor.

#include "swaplab/optim/tensor.hpp"

#include <cstdint>
#include <span>

namespace swaplab::optim {

/// Fills `out` with bytes [offset_bytes, offset_bytes + out.size()) of the row-major content of
/// `box`, a part of the whole tensor `whole`.
void read_box(const Tensor& whole, const Box& box, std::uint64_t offset_bytes,
              std::span<std::byte> out);

}  // namespace swaplab::optim
