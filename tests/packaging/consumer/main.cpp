// Trains, saves and loads one parameter with the installed libraries, from outside the source tree.
#include "swaplab/harness/train_engine.hpp"
#include "swaplab/optim/swap_adamw.hpp"
#include "swaplab/sim/simulated_device.hpp"
#include "swaplab/sim/stream.hpp"
#include "swaplab/sim/world.hpp"

#include <cstdio>
#include <memory>
#include <span>
#include <vector>

namespace {

using namespace swaplab;

optim::Tensor device_tensor(sim::Device& device, sim::StreamRef stream, const char* tag,
                            const std::vector<float>& values) {
    const auto bytes = std::as_bytes(std::span(values));
    optim::Tensor tensor(sim::DType::float32, {static_cast<std::int64_t>(values.size())},
                         optim::make_device_storage(device, bytes.size(), stream, tag));
    tensor.storage().write(0, bytes);
    return tensor;
}

void train(sim::Communicator& communicator, harness::Storage& storage, std::vector<float>& result) {
    const auto device = sim::make_simulated_device({});
    const sim::Stream stream(*device, "model");
    const auto param = std::make_shared<optim::Parameter>();
    param->name = "w";
    param->data = device_tensor(*device, stream, "w", {1, 2, 3, 4});
    param->grad = device_tensor(*device, stream, "w.grad", {1, -1, 2, -2});
    param->has_grad = true;
    optim::ParamGroup group;
    group.params = {param};
    optim::SwapAdamW optimizer(*device, communicator, {group});
    harness::TrainEngine engine(*device, communicator, storage, {param}, optimizer);
    optimizer.step();
    engine.save_dcp("checkpoint");
    const std::vector<float> saved = optim::to_floats(param->data);
    optimizer.step();
    engine.load_dcp("checkpoint");
    result = optim::to_floats(param->data);
    if (result != saved) {
        result.clear();
    }
}

}  // namespace

int main() {
    const auto storage = harness::make_memory_storage();
    std::vector<float> result;
    sim::rethrow_first(sim::run_ranks(
        {}, [&](sim::Communicator& communicator) { train(communicator, *storage, result); }));
    for (const float value : result) {
        std::printf("%g ", static_cast<double>(value));
    }
    std::printf("\n");
    return result.size() == 4 && result[0] < 1 && result[1] > 2 ? 0 : 1;
}
