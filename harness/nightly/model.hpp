#pragma once

/// A model on a device, for measurements.

#include "swaplab/optim/optimizer.hpp"
#include "swaplab/sim/device.hpp"
#include "swaplab/sim/stream.hpp"

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace swaplab::harness::nightly {

/// Parameters of about equal size, filled on the device.
class Model {
  public:
    Model(sim::Device& device, std::int64_t elements, std::int64_t tensors)
        : device_(device), stream_(device, "model") {
        for (std::int64_t i = 0; i < tensors; ++i) {
            const std::int64_t count = elements * (i + 1) / tensors - elements * i / tensors;
            auto param = std::make_shared<optim::Parameter>();
            param->name = "p" + std::to_string(i);
            param->data = tensor(count, param->name, std::byte{0x3f});
            param->grad = tensor(count, param->name + ".grad", std::byte{0x3c});
            param->has_grad = true;
            params_.push_back(std::move(param));
        }
        device.synchronize(stream_.ref());
    }

    [[nodiscard]] std::vector<optim::ParamGroup> groups() const {
        optim::ParamGroup group;
        group.params = params_;
        return {group};
    }
    [[nodiscard]] const std::vector<optim::ParameterPtr>& params() const { return params_; }

  private:
    optim::Tensor tensor(std::int64_t count, const std::string& tag, std::byte value) {
        auto storage = optim::make_device_storage(
            device_, static_cast<std::uint64_t>(count) * sizeof(float), stream_, tag);
        device_.fill_async(storage->data(), value, storage->bytes(), stream_);
        return {optim::DType::float32, {count}, std::move(storage)};
    }

    sim::Device& device_;
    sim::Stream stream_;
    std::vector<optim::ParameterPtr> params_;
};

template <class Work>
double seconds_of(const Work& work) {
    const auto begin = std::chrono::steady_clock::now();
    work();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

/// The least of `times` steps, after one that is not counted.
inline double step_seconds(optim::Optimizer& optimizer, int times) {
    optimizer.step();
    double least = seconds_of([&] { optimizer.step(); });
    for (int i = 1; i < times; ++i) {
        least = std::min(least, seconds_of([&] { optimizer.step(); }));
    }
    return least;
}

}  // namespace swaplab::harness::nightly
