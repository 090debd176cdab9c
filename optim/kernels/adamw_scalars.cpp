#include "swaplab/optim/adamw_kernel.hpp"
#include "swaplab/sim/assert.hpp"

#include <cmath>

namespace swaplab::optim {
namespace {

/// base^exponent by repeated squaring from the lowest bit: the same bits everywhere, unlike pow().
double power(double base, std::int64_t exponent) {
    double result = 1.0;
    for (auto bits = static_cast<std::uint64_t>(exponent); bits != 0; bits >>= 1U) {
        if ((bits & 1U) != 0) {
            result *= base;
        }
        base *= base;
    }
    return result;
}

}  // namespace

AdamWScalars adamw_scalars(const AdamWOptions& options, std::int64_t step) {
    SWAPLAB_ASSERT(step >= 1, "Adam's steps count from 1");
    const double bias_correction1 = 1.0 - power(options.beta1, step);
    const double bias_correction2 = 1.0 - power(options.beta2, step);
    AdamWScalars scalars;
    scalars.decay_factor = static_cast<float>(1.0 - options.lr * options.weight_decay);
    scalars.beta1_complement = static_cast<float>(1.0 - options.beta1);
    scalars.beta1 = static_cast<float>(options.beta1);
    scalars.beta2_complement = static_cast<float>(1.0 - options.beta2);
    scalars.beta2 = static_cast<float>(options.beta2);
    scalars.step_size = static_cast<float>(options.lr / bias_correction1);
    scalars.inv_sqrt_bc2 = static_cast<float>(1.0 / std::sqrt(bias_correction2));
    scalars.eps = static_cast<float>(options.eps);
    scalars.amsgrad = options.amsgrad;
    scalars.maximize = options.maximize;
    return scalars;
}

}  // namespace swaplab::optim
