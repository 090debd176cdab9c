#pragma once

/// Whose parts of a tensor a checkpoint no longer holds.

#include "swaplab/harness/checkpoint.hpp"
#include "swaplab/optim/tensor.hpp"

namespace swaplab::harness {

/// For a moment that was saved smaller than its parameter, as happens when ranks save plain local
/// tensors under one key and one of them is kept: fills in `mismatch` the ranks whose parts are in
/// no file and how many elements that is. Who held what when it was saved is known from the
/// parameter's own chunks in the checkpoint, else from the live tensor; where the survivor fits
/// neither, only the number is told.
void explain_lost_shards(const Checkpoint& checkpoint, const TensorEntry& saved,
                         const optim::Tensor& live, optim::Mismatch& mismatch);

}  // namespace swaplab::harness
