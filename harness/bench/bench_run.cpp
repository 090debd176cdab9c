#include "bench_run.hpp"

#include "swaplab/optim/swap_adamw.hpp"

namespace swaplab::bench {
namespace {

std::unique_ptr<sim::SimulatedDevice> make_device(int rank, std::int64_t elements) {
    sim::SimulatedDeviceOptions options;
    options.rank = rank;
    options.capacity_bytes = static_cast<std::uint64_t>(elements) * 32 + (std::uint64_t{16} << 20U);
    return sim::make_simulated_device(options);
}

std::vector<float> ramp(std::int64_t count) {
    std::vector<float> values;
    for (std::int64_t i = 0; i < count; ++i) {
        values.push_back(static_cast<float>(i % 8191) / 8192.0F - 0.5F);
    }
    return values;
}

}  // namespace

BenchRun::BenchRun(sim::Communicator& communicator, std::int64_t elements)
    : device_(make_device(communicator.rank(), elements)), stream_(*device_, "model") {
    const optim::ShardSpec spec{
        {elements}, {communicator.size()}, {optim::Placement::shard(0)}, {}};
    const optim::Shape local = spec.box_of(communicator.rank())->sizes;
    const std::vector<float> values = ramp(optim::numel(local));
    const auto bytes = std::as_bytes(std::span(values));
    param_ = std::make_shared<optim::Parameter>();
    param_->name = "w";
    param_->data = {sim::DType::float32, local,
                    optim::make_device_storage(*device_, bytes.size(), stream_, "w"), spec};
    param_->grad = {sim::DType::float32, local,
                    optim::make_device_storage(*device_, bytes.size(), stream_, "w.grad"), spec};
    param_->data.storage().write(0, bytes);
    param_->grad.storage().write(0, bytes);
    param_->has_grad = true;
}

std::vector<optim::ParamGroup> BenchRun::groups() const {
    optim::ParamGroup group;
    group.params = {param_};
    return {group};
}

std::unique_ptr<optim::Optimizer> BenchRun::make_swap_adamw(sim::Communicator& communicator) {
    optim::SwapAdamWOptions options;
    options.bucket_elements = std::int64_t{1} << 16U;
    return std::make_unique<optim::SwapAdamW>(*device_, communicator, groups(), options);
}

}  // namespace swaplab::bench
