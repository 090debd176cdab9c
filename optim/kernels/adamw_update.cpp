#include "swaplab/optim/adamw_kernel.hpp"
#include "swaplab/sim/mutant.hpp"

#include <cmath>

namespace swaplab::optim {
namespace {

/// The larger one, or NaN when either is NaN.
float maximum(float a, float b) {
    if (SWAPLAB_MUTANT("kernel.maximum_drops_nan")) {
        return a < b ? b : a;
    }
    return b > a || std::isnan(b) ? b : a;
}

}  // namespace

void adamw_update(const AdamWArrays& arrays, std::int64_t count, const AdamWScalars& s) {
    for (std::int64_t i = 0; i < count; ++i) {
        const float g = s.maximize ? -arrays.grad[i] : arrays.grad[i];
        float m = arrays.exp_avg[i];
        float v = arrays.exp_avg_sq[i];
        const float p = std::fma(arrays.param[i], -s.decay, arrays.param[i]);
        const float difference = g - m;
        m = s.beta1_complement < 0.5F ? std::fma(s.beta1_complement, difference, m)
                                      : std::fma(-s.beta1, difference, g);
        v = std::fma(s.beta2_complement * g, g, s.beta2 * v);
        arrays.exp_avg[i] = m;
        arrays.exp_avg_sq[i] = v;
        if (s.amsgrad) {
            v = maximum(arrays.max_exp_avg_sq[i], v);
            arrays.max_exp_avg_sq[i] = v;
        }
        const float denominator = std::fma(std::sqrt(v), s.inv_sqrt_bc2, s.eps);
        arrays.param[i] = std::fma(-s.step_size, m / denominator, p);
    }
}

}  // namespace swaplab::optim
