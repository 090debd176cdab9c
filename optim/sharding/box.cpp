#include "swaplab/optim/sharding.hpp"
#include "swaplab/sim/assert.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace swaplab::optim {

std::string to_string(const Box& box) {
    std::string text = "[";
    for (std::size_t d = 0; d < box.sizes.size(); ++d) {
        text += fmt::format("{}{}:{}", d == 0 ? "" : ", ", box.offsets[d],
                            box.offsets[d] + box.sizes[d]);
    }
    return text + "]";
}

std::optional<Box> intersect(const Box& a, const Box& b) {
    SWAPLAB_ASSERT(a.sizes.size() == b.sizes.size(), to_string(a) + " and " + to_string(b));
    Box common;
    for (std::size_t d = 0; d < a.sizes.size(); ++d) {
        const std::int64_t first = std::max(a.offsets[d], b.offsets[d]);
        const std::int64_t last = std::min(a.offsets[d] + a.sizes[d], b.offsets[d] + b.sizes[d]);
        if (first >= last) {
            return std::nullopt;
        }
        common.offsets.push_back(first);
        common.sizes.push_back(last - first);
    }
    return common;
}

}  // namespace swaplab::optim
