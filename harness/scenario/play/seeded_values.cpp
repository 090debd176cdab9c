#include "scenario/play/seeded_values.hpp"

#include "swaplab/sim/random.hpp"

namespace swaplab::harness::scenario {
namespace {

/// In (-1, 1), never 0, 24 significant bits.
float in_unit(std::uint64_t bits) {
    const auto odd = static_cast<std::int32_t>((bits >> 40U) | 1U);
    return static_cast<float>(odd - (1 << 23)) / static_cast<float>(1 << 23);
}

std::uint64_t mix(std::uint64_t seed, std::string_view purpose, std::string_view name,
                  std::int64_t index) {
    const std::uint64_t stem =
        sim::hash_mix(sim::hash_mix(seed, sim::hash_text(purpose)), sim::hash_text(name));
    return sim::hash_mix(stem, static_cast<std::uint64_t>(index));
}

}  // namespace

float seeded_parameter(std::uint64_t seed, std::string_view name, std::int64_t index) {
    return 0.5F * in_unit(mix(seed, "parameter", name, index));
}

float seeded_gradient(std::uint64_t seed, std::string_view name, std::int64_t index,
                      std::int64_t training_step) {
    return in_unit(sim::hash_mix(mix(seed, "gradient", name, index),
                                 static_cast<std::uint64_t>(training_step)));
}

std::vector<std::int64_t> global_indices(const optim::Shape& global_shape, const optim::Box& box) {
    std::vector<std::int64_t> out;
    const std::int64_t count = optim::numel(box.sizes);
    out.reserve(static_cast<std::size_t>(count));
    for (std::int64_t local = 0; local < count; ++local) {
        std::int64_t rest = local;
        std::int64_t position = 0;
        std::int64_t stride = 1;
        for (std::size_t d = global_shape.size(); d-- > 0;) {
            position += (rest % box.sizes[d] + box.offsets[d]) * stride;
            rest /= box.sizes[d];
            stride *= global_shape[d];
        }
        out.push_back(position);
    }
    return out;
}

std::string index_text(const optim::Shape& shape, std::int64_t position) {
    optim::Shape index(shape.size());
    for (std::size_t d = shape.size(); d-- > 0;) {
        index[d] = shape[d] > 0 ? position % shape[d] : 0;
        position = shape[d] > 0 ? position / shape[d] : 0;
    }
    return optim::to_string(index);
}

}  // namespace swaplab::harness::scenario
