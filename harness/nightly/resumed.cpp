#include "nightly/resumed.hpp"

#include "swaplab/harness/train_engine.hpp"
#include "swaplab/optim/swap_adamw.hpp"
#include "swaplab/sim/digest.hpp"
#include "swaplab/sim/stream.hpp"

#include <fmt/format.h>

#include <memory>
#include <span>
#include <vector>

namespace swaplab::harness::nightly {
namespace {

constexpr int steps = 5;
constexpr int tensors = 4;
constexpr std::int64_t rows = 101;  // uneven over two ranks
constexpr std::int64_t columns = 33;

/// A model of row-sharded parameters, its optimizer and the engine that saves both.
class Run {
  public:
    Run(sim::Device& device, sim::Communicator& communicator, Storage& storage)
        : device_(device),
          rank_(communicator.rank()),
          spec_{{rows, columns}, {communicator.size()}, {optim::Placement::shard(0)}, {}},
          stream_(device, "model") {
        for (int i = 0; i < tensors; ++i) {
            params_.push_back(parameter(i));
        }
        optim::ParamGroup group;
        group.params = params_;
        optim::SwapAdamWOptions options;
        options.bucket_elements = 1 << 10U;
        optimizer_ = std::make_unique<optim::SwapAdamW>(
            device, communicator, std::vector<optim::ParamGroup>{group}, options);
        engine_ =
            std::make_unique<TrainEngine>(device, communicator, storage, params_, *optimizer_);
    }

    void train() {
        for (int i = 0; i < steps; ++i) {
            optimizer_->step();
        }
    }
    [[nodiscard]] TrainEngine& engine() { return *engine_; }

    [[nodiscard]] std::string digest() const {
        sim::RollingDigest digest;
        for (const optim::ParameterPtr& param : params_) {
            std::vector<std::byte> bytes(param->data.local_bytes());
            param->data.storage().read(0, bytes);
            digest.add(std::span<const std::byte>(bytes));
        }
        return fmt::format("{:016x}", digest.value());
    }

  private:
    optim::ParameterPtr parameter(int index) {
        auto param = std::make_shared<optim::Parameter>();
        param->name = fmt::format("p{}", index);
        param->data = tensor(param->name, 8191 + index);
        param->grad = tensor(param->name + ".grad", 127 + index);
        param->has_grad = true;
        return param;
    }

    /// Element i of the global tensor is a function of i and `period`.
    optim::Tensor tensor(const std::string& tag, int period) {
        const optim::Box box = *spec_.box_of(rank_);
        const std::int64_t first = box.offsets[0] * columns;
        std::vector<float> values;
        for (std::int64_t i = first; i < first + optim::numel(box.sizes); ++i) {
            values.push_back(static_cast<float>(i % period) / static_cast<float>(period) - 0.5F);
        }
        const auto bytes = std::as_bytes(std::span(values));
        auto storage = optim::make_device_storage(device_, bytes.size(), stream_, tag);
        storage->write(0, bytes);
        return {optim::DType::float32, box.sizes, std::move(storage), spec_};
    }

    sim::Device& device_;
    int rank_;
    optim::ShardSpec spec_;
    sim::Stream stream_;
    std::vector<optim::ParameterPtr> params_;
    std::unique_ptr<optim::SwapAdamW> optimizer_;
    std::unique_ptr<TrainEngine> engine_;
};

}  // namespace

std::string resumed_digest(sim::Device& device, sim::Communicator& communicator,
                           const std::string& directory) {
    const auto storage = make_posix_storage();
    {
        Run saved(device, communicator, *storage);
        saved.train();
        (void)saved.engine().save_dcp(directory);
    }
    Run resumed(device, communicator, *storage);
    resumed.engine().load_dcp(directory);
    resumed.train();
    return resumed.digest();
}

}  // namespace swaplab::harness::nightly
