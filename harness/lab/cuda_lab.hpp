#pragma once

/// CUDA as the backend of scenarios and properties. Over the stand-in for libcudart it sees what
/// simulated devices see; on a GPU, bytes and the ledger.

#include "scenario/play/backend.hpp"

#include <memory>

namespace swaplab::harness {

/// Throws DeviceError, which says why and what to do, where CUDA cannot be used.
[[nodiscard]] std::unique_ptr<scenario::Backend> make_cuda_backend();

}  // namespace swaplab::harness
