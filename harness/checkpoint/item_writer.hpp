#pragma once

/// Writing one item as torch.save of PyTorch 2.8 does.

#include "checkpoint/block_writer.hpp"

#include "swaplab/optim/value.hpp"

#include <cstdint>

namespace swaplab::harness {

/// Writes a tensor; its bytes go from the storage into the writer's block, part by part. Returns
/// the item's length in bytes.
std::uint64_t write_tensor_item(BlockWriter& out, const optim::Tensor& tensor);

/// Writes anything else. Throws ArgumentError for what a value item cannot hold (a tensor inside a
/// tuple, an object of a foreign class); nothing is written then.
std::uint64_t write_value_item(BlockWriter& out, const optim::Value& value);

/// The pickle of a non-tensor item. Throws ArgumentError as above.
[[nodiscard]] std::string pickle_of(const optim::Value& value);

}  // namespace swaplab::harness
