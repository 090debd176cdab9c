#include "kernels/adamw_element.hpp"

namespace swaplab::optim {

void adamw_update(const AdamWArrays& arrays, std::int64_t count, const AdamWScalars& scalars) {
    for (std::int64_t i = 0; i < count; ++i) {
        adamw_element(arrays, i, scalars);
    }
}

}  // namespace swaplab::optim
