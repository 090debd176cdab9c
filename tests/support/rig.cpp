#include "rig.hpp"

#include "swaplab/sim/random.hpp"
#include "swaplab/sim/world.hpp"

#include <algorithm>

namespace swaplab::testing {

using optim::Shape;
using optim::Tensor;

namespace {

/// In [-1, 1), a pure function of its arguments, without period.
float sample(const std::string& name, std::uint64_t index, std::uint64_t salt) {
    sim::Rng rng(sim::hash_mix(sim::hash_mix(sim::hash_text(name), index), salt));
    return static_cast<float>(rng.next() >> 40U) / 8388608.0F - 1.0F;
}

std::vector<float> samples(const ParamSpec& spec, std::uint64_t salt) {
    std::vector<float> values(static_cast<std::size_t>(optim::numel(spec.shape)));
    for (std::size_t i = 0; i < values.size(); ++i) {
        values[i] = sample(spec.name, i, salt);
    }
    return values;
}

}  // namespace

std::vector<float> cut(const std::vector<float>& global, const Shape& shape,
                       const optim::Box& box) {
    std::vector<float> part;
    for (std::size_t i = 0; i < global.size(); ++i) {
        std::size_t rest = i;
        bool inside = true;
        for (std::size_t d = shape.size(); d-- > 0;) {
            const auto at = static_cast<std::int64_t>(rest % static_cast<std::size_t>(shape[d]));
            rest /= static_cast<std::size_t>(shape[d]);
            inside = inside && at >= box.offsets[d] && at < box.offsets[d] + box.sizes[d];
        }
        if (inside) {
            part.push_back(global[i]);
        }
    }
    return part;
}

Rig::Rig(sim::Communicator& communicator, std::vector<ParamSpec> specs,
         sim::SimulatedDeviceOptions options)
    : rank_(communicator.rank()),
      device_([&] {
          options.rank = communicator.rank();
          return sim::make_simulated_device(options);
      }()),
      stream_(*device_, "rig"),
      specs_(std::move(specs)) {
    for (const ParamSpec& spec : specs_) {
        optim::ShardSpec shard{spec.shape, {communicator.size()}, {optim::Placement::shard(0)}, {}};
        const optim::Box box = *shard.box_of(rank_);
        const auto bytes = static_cast<std::uint64_t>(optim::numel(box.sizes)) * sizeof(float);
        const auto tensor = [&](const std::string& tag) {
            return Tensor(optim::DType::float32, box.sizes,
                          optim::make_device_storage(*device_, bytes, stream_, tag), shard);
        };
        params_.push_back(std::make_shared<optim::Parameter>(optim::Parameter{
            spec.name, tensor("param " + spec.name), tensor("grad " + spec.name)}));
    }
    reset_params();
}

optim::ParameterPtr Rig::param(const std::string& name) const {
    return *std::find_if(params_.begin(), params_.end(),
                         [&](const auto& param) { return param->name == name; });
}

std::vector<optim::ParamGroup> Rig::groups(const optim::AdamWOptions& options) const {
    return {{params_, options, {}}};
}

void Rig::put(const Tensor& tensor, const std::vector<float>& global) {
    const auto part = cut(global, tensor.global_shape(), *tensor.shard()->box_of(rank_));
    tensor.storage().write(0, std::as_bytes(std::span(part)));
}

void Rig::reset_params() {
    for (std::size_t i = 0; i < specs_.size(); ++i) {
        put(params_[i]->data, samples(specs_[i], 0));
    }
}

void Rig::set_grads(std::int64_t step, const std::vector<std::string>& absent) {
    for (std::size_t i = 0; i < specs_.size(); ++i) {
        put(params_[i]->grad, samples(specs_[i], static_cast<std::uint64_t>(step)));
        params_[i]->has_grad =
            std::find(absent.begin(), absent.end(), specs_[i].name) == absent.end();
    }
}

void run_world(int ranks, const std::function<void(sim::Communicator&)>& program) {
    sim::rethrow_first(sim::run_ranks({ranks, 1}, program));
}

}  // namespace swaplab::testing
