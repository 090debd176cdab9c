#pragma once

/// The AdamW update of one element: the same source for host and CUDA code, and, compiled without
/// contraction (-ffp-contract=off, -fmad=false), the same bits.

#include "swaplab/optim/adamw_kernel.hpp"

#include <cmath>

#ifdef __CUDACC__
#define SWAPLAB_HOST_DEVICE __host__ __device__
#else
#define SWAPLAB_HOST_DEVICE
#endif
#ifndef __CUDA_ARCH__
#include "swaplab/sim/mutant.hpp"
#endif

namespace swaplab::optim {

/// The larger one, or NaN when either is NaN.
SWAPLAB_HOST_DEVICE inline float adamw_maximum(float a, float b) {
#ifndef __CUDA_ARCH__
    if (SWAPLAB_MUTANT("kernel.maximum_drops_nan")) {
        return a < b ? b : a;
    }
#endif
    return b > a || b != b ? b : a;
}

SWAPLAB_HOST_DEVICE inline void adamw_element(const AdamWArrays& arrays, std::int64_t i,
                                              const AdamWScalars& s) {
    const float g = s.maximize ? -arrays.grad[i] : arrays.grad[i];
    float m = arrays.exp_avg[i];
    float v = arrays.exp_avg_sq[i];
    const float p = arrays.param[i] * s.decay_factor;
    const float difference = g - m;
    m = s.beta1_complement < 0.5F ? fmaf(s.beta1_complement, difference, m)
                                  : fmaf(-s.beta1, difference, g);
    v = fmaf(s.beta2_complement * g, g, s.beta2 * v);
    arrays.exp_avg[i] = m;
    arrays.exp_avg_sq[i] = v;
    if (s.amsgrad) {
        v = adamw_maximum(arrays.max_exp_avg_sq[i], v);
        arrays.max_exp_avg_sq[i] = v;
    }
    const float denominator = fmaf(sqrtf(v), s.inv_sqrt_bc2, s.eps);
    arrays.param[i] = fmaf(-s.step_size, m / denominator, p);
}

}  // namespace swaplab::optim
