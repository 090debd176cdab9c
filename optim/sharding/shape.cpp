#include "swaplab/optim/sharding.hpp"
#include "swaplab/sim/error.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace swaplab::optim {

std::int64_t numel(const Shape& shape) {
    std::int64_t count = 1;
    for (const std::int64_t size : shape) {
        if (size < 0 || __builtin_mul_overflow(count, size, &count)) {
            throw sim::ArgumentError(
                fmt::format("shape {} has a negative size or more than 2^63-1 elements",
                            to_string(shape)),
                {{"shape", to_string(shape)}});
        }
    }
    return count;
}

std::string to_string(const Shape& shape) {
    return fmt::format("[{}]", fmt::join(shape, ","));
}

}  // namespace swaplab::optim
