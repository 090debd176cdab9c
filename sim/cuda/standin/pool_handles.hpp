#pragma once

/// Handles of memory pools.

#include "cuda/standin/runtime.hpp"

namespace swaplab::sim {

struct PoolPlace {
    Gpu& gpu;
    Pool& pool;
};

/// Of the pool of that number on its device, 0 the default one: a place where no memory is.
[[nodiscard]] cudaMemPool_t pool_handle(const Gpu& gpu, std::size_t number);
/// Throws a Failure for what is the handle of no pool, or of one that is destroyed.
[[nodiscard]] PoolPlace pool_place(Runtime& runtime, cudaMemPool_t handle);

}  // namespace swaplab::sim
