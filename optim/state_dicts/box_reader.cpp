#include "state_dicts/box_reader.hpp"

#include <algorithm>

namespace swaplab::optim {
namespace {

/// Elements of `box` that lie side by side in the whole tensor: its last dims, up to and including
/// the last one that is cut.
std::int64_t run_elements(const Shape& shape, const Box& box) {
    std::int64_t run = 1;
    for (std::size_t d = shape.size(); d-- > 0;) {
        run *= box.sizes[d];
        if (box.sizes[d] != shape[d]) {
            break;
        }
    }
    return run;
}

/// The row-major index in the whole tensor of element `index` of the box.
std::int64_t whole_index(const Shape& shape, const Box& box, std::int64_t index) {
    std::int64_t whole = 0;
    std::int64_t stride = 1;
    for (std::size_t d = shape.size(); d-- > 0;) {
        whole += (box.offsets[d] + index % box.sizes[d]) * stride;
        index /= box.sizes[d];
        stride *= shape[d];
    }
    return whole;
}

}  // namespace

void read_box(const Tensor& whole, const Box& box, std::uint64_t offset_bytes,
              std::span<std::byte> out) {
    const Shape& shape = whole.local_shape();
    const std::uint64_t element = sim::size_of(whole.dtype());
    const std::uint64_t run_bytes = static_cast<std::uint64_t>(run_elements(shape, box)) * element;
    while (!out.empty()) {
        const std::uint64_t within = offset_bytes % run_bytes;
        const auto index = static_cast<std::int64_t>((offset_bytes - within) / element);
        const std::uint64_t first =
            static_cast<std::uint64_t>(whole_index(shape, box, index)) * element + within;
        const std::size_t count = std::min<std::uint64_t>(run_bytes - within, out.size());
        whole.storage().read(first, out.first(count));
        out = out.subspan(count);
        offset_bytes += count;
    }
}

}  // namespace swaplab::optim
