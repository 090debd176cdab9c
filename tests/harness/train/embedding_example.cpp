#include "swaplab/harness/train_engine.hpp"
#include "swaplab/optim/swap_adamw.hpp"
#include "swaplab/sim/simulated_device.hpp"
#include "swaplab/sim/stream.hpp"
#include "swaplab/sim/world.hpp"

#include <memory>

using namespace swaplab;

// This rank's rows of a parameter "w" of shape [6,4], which Shard(0) spreads over all ranks.
optim::ParameterPtr make_w(sim::Device& device, sim::StreamRef stream, sim::Communicator& ranks) {
    const optim::ShardSpec shard{{6, 4}, {ranks.size()}, {optim::Placement::shard(0)}, {}};
    const optim::Shape local = shard.box_of(ranks.rank())->sizes;
    const auto bytes = static_cast<std::uint64_t>(optim::numel(local)) * sizeof(float);
    const auto tensor = [&](const char* tag) {
        auto storage = optim::make_device_storage(device, bytes, stream, tag);
        storage->write(0, std::vector<std::byte>(bytes));  // your initial values
        return optim::Tensor(optim::DType::float32, local, std::move(storage), shard);
    };
    return std::make_shared<optim::Parameter>(
        optim::Parameter{"w", tensor("param w"), tensor("grad w"), true});
}

void train(sim::Communicator& ranks, harness::Storage& files, const std::string& directory,
           bool resume) {
    const auto device = sim::make_simulated_device({.rank = ranks.rank()});
    const sim::Stream stream(*device, "model");
    const optim::ParameterPtr w = make_w(*device, stream, ranks);
    optim::SwapAdamW optimizer(*device, ranks, {{{w}, {}, {}}});
    harness::TrainEngine engine(*device, ranks, files, {w}, optimizer);
    if (resume) {
        engine.load_dcp(directory);
    }
    optimizer.step();
    engine.save_dcp(directory);
}

int main(int argc, char** argv) {
    const std::string directory = argc > 1 ? argv[1] : "step-1";
    const auto files = harness::make_posix_storage();
    for (const int world : {2, 3}) {  // saved by two ranks, read by three
        sim::rethrow_first(sim::run_ranks({.size = world}, [&](sim::Communicator& ranks) {
            train(ranks, *files, directory, world == 3);
        }));
    }
}
