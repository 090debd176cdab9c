#pragma once

/// The AdamW update: one operation order for every backend (docs/numerics.md).

#include "swaplab/optim/param_group.hpp"

#include <cstdint>
#include <functional>
#include <vector>

namespace swaplab::optim {

/// Everything of one update that depends on the group and the step only, computed once in double
/// and rounded to float once. Equal bits on every machine: powers by repeated squaring, no libm
/// pow.
struct AdamWScalars {
    float decay_factor = 1;     ///< 1 - lr * weight_decay
    float beta1_complement = 0; ///< 1 - beta1
    float beta1 = 0;
    float beta2_complement = 0; ///< 1 - beta2
    float beta2 = 0;
    float step_size = 0;        ///< lr / (1 - beta1^t)
    float inv_sqrt_bc2 = 0;     ///< 1 / sqrt(1 - beta2^t)
    float eps = 0;
    bool amsgrad = false;
    bool maximize = false;
};

/// `step` counts from 1: the value after the increment.
[[nodiscard]] AdamWScalars adamw_scalars(const AdamWOptions& options, std::int64_t step);

/// Arrays of `count` elements; max_exp_avg_sq only with amsgrad.
struct AdamWArrays {
    float* param = nullptr;
    const float* grad = nullptr;
    float* exp_avg = nullptr;
    float* exp_avg_sq = nullptr;
    float* max_exp_avg_sq = nullptr;
};

/// Updates `count` elements in place.
void adamw_update(const AdamWArrays& arrays, std::int64_t count, const AdamWScalars& scalars);

/// One run of elements of one parameter. The arrays are device addresses.
struct KernelSegment {
    AdamWArrays arrays;
    std::int64_t count = 0;
    AdamWScalars scalars;
};

/// Launches the update of all segments on a cudaStream_t.
using AdamWLauncher = void (*)(const std::vector<KernelSegment>& segments, void* native_stream);

/// From now on, kernels that are made can run on CUDA devices, too (see cuda_kernels.hpp). Threads:
/// any.
void register_adamw_launcher(AdamWLauncher launcher) noexcept;

/// For sim::Kernel::cuda_launcher; empty where no launcher is registered.
[[nodiscard]] std::function<void(void*)> adamw_cuda_launcher(std::vector<KernelSegment> segments);

}  // namespace swaplab::optim
