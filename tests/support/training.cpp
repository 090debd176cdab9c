#include "support/training.hpp"

#include "swaplab/sim/random.hpp"

#include <algorithm>
#include <stdexcept>

namespace swaplab::support {
namespace {

constexpr std::uint64_t initial_seed = 1;
constexpr std::uint64_t gradient_seed = 2;

/// Row-major index in the global tensor of local element `index` of `box`.
std::int64_t global_index(const optim::Shape& shape, const optim::Box& box, std::int64_t index) {
    std::int64_t global = 0;
    std::int64_t stride = 1;
    for (std::size_t d = shape.size(); d-- > 0;) {
        global += (box.offsets[d] + index % box.sizes[d]) * stride;
        index /= box.sizes[d];
        stride *= shape[d];
    }
    return global;
}

void fill(const optim::Tensor& tensor, const optim::Box& box, std::string_view name,
          std::uint64_t seed, std::int64_t step) {
    std::vector<float> values(static_cast<std::size_t>(tensor.local_numel()));
    for (std::size_t i = 0; i < values.size(); ++i) {
        const std::int64_t index =
            global_index(tensor.global_shape(), box, static_cast<std::int64_t>(i));
        values[i] = seeded_value(seed, name, index, step);
    }
    tensor.storage().write(0, std::as_bytes(std::span(values)));
}

optim::Box box_of(const optim::Tensor& tensor, int rank) {
    if (!tensor.shard()) {
        return {optim::Shape(tensor.local_shape().size(), 0), tensor.local_shape()};
    }
    return tensor.shard()->box_of(rank).value();
}

}  // namespace

float seeded_value(std::uint64_t seed, std::string_view name, std::int64_t index,
                   std::int64_t step) {
    const std::uint64_t place =
        sim::hash_mix(static_cast<std::uint64_t>(index), static_cast<std::uint64_t>(step));
    const std::uint64_t bits = sim::hash_mix(sim::hash_mix(seed, sim::hash_text(name)), place);
    // 23 random bits and a half: never 0, never 1.
    const double unit = (static_cast<double>(bits >> 41U) + 0.5) / static_cast<double>(1U << 23U);
    return static_cast<float>(2.0 * unit - 1.0);
}

Trainer::Trainer(sim::Communicator& communicator, const std::vector<ParamSpec>& specs,
                 sim::SimulatedDeviceOptions options, optim::Shape mesh)
    : Trainer(
          communicator, specs,
          [&] {
              options.rank = communicator.rank();
              return sim::make_simulated_device(options);
          }(),
          mesh) {
    simulated_ = dynamic_cast<sim::SimulatedDevice*>(device_.get());
}

Trainer::Trainer(sim::Communicator& communicator, const std::vector<ParamSpec>& specs,
                 std::unique_ptr<sim::Device> device, const optim::Shape& wanted_mesh)
    : communicator_(communicator), device_(std::move(device)), faults_(communicator.rank()) {
    faulty_device_ = sim::make_faulty_device(*device_, faults_);
    stream_ = std::make_unique<sim::Stream>(*device_, "model");
    const optim::Shape mesh = wanted_mesh.empty() ? optim::Shape{communicator.size()} : wanted_mesh;
    for (const ParamSpec& spec : specs) {
        auto parameter = std::make_shared<optim::Parameter>();
        parameter->name = spec.name;
        std::optional<optim::ShardSpec> shard;
        optim::Shape local = spec.shape;
        if (!spec.placements.empty()) {
            shard = optim::ShardSpec{spec.shape, mesh, spec.placements, {}};
            local = shard->box_of(communicator.rank()).value().sizes;
        }
        const std::uint64_t bytes = static_cast<std::uint64_t>(optim::numel(local)) * 4;
        const auto make = [&](const std::string& tag) {
            return optim::Tensor(optim::DType::float32, local,
                                 optim::make_device_storage(*faulty_device_, bytes, *stream_, tag),
                                 shard);
        };
        parameter->data = make("param " + spec.name);
        parameter->grad = make("grad " + spec.name);
        fill(parameter->data, box_of(parameter->data, communicator.rank()), spec.name, initial_seed,
             0);
        model_.push_back(std::move(parameter));
    }
}

const optim::ParameterPtr& Trainer::parameter(const std::string& name) const {
    const auto found = std::find_if(model_.begin(), model_.end(),
                                    [&](const auto& one) { return one->name == name; });
    if (found == model_.end()) {
        throw std::invalid_argument("no parameter " + name);
    }
    return *found;
}

optim::ParamGroup Trainer::group(const optim::AdamWOptions& options,
                                 const std::vector<std::string>& names) const {
    optim::ParamGroup group;
    group.options = options;
    if (names.empty()) {
        group.params = model_;
    }
    for (const std::string& name : names) {
        group.params.push_back(parameter(name));
    }
    return group;
}

void Trainer::set_gradients(std::int64_t step, const std::vector<std::string>& absent) {
    for (const optim::ParameterPtr& parameter : model_) {
        parameter->has_grad =
            std::find(absent.begin(), absent.end(), parameter->name) == absent.end();
        if (parameter->has_grad) {
            fill(parameter->grad, box_of(parameter->grad, communicator_.rank()), parameter->name,
                 gradient_seed, step);
        }
    }
}

void Trainer::train(optim::Optimizer& optimizer, std::int64_t first, std::int64_t count) {
    for (std::int64_t step = first; step < first + count; ++step) {
        set_gradients(step);
        optimizer.step();
    }
}

std::uint64_t Trainer::resident_bytes() const {
    std::uint64_t bytes = 0;
    for (const optim::ParameterPtr& parameter : model_) {
        bytes += parameter->data.local_bytes() + parameter->grad.local_bytes();
    }
    return bytes;
}

optim::Dict Trainer::parameters() const {
    optim::Dict out;
    for (const optim::ParameterPtr& parameter : model_) {
        out.set(parameter->name, parameter->data.clone_to_host());
    }
    return out;
}

void Trainer::set_parameters(const optim::Dict& parameters) {
    for (const optim::ParameterPtr& parameter : model_) {
        const optim::Value* saved = parameters.find(parameter->name);
        parameter->data.storage().write(0, saved->get_if<optim::Tensor>()->to_bytes());
    }
}

std::vector<std::string> Trainer::findings() {
    // What the trainer owns is in use until here and is no leak.
    model_.clear();
    stream_.reset();
    simulated_->finish();
    std::vector<std::string> texts;
    for (const sim::Finding& finding : simulated_->findings()) {
        texts.push_back(std::string(sim::name_of(finding.kind)) + ": " + finding.text);
    }
    return texts;
}

optim::Value everything(const Trainer& trainer, const optim::Optimizer& optimizer) {
    optim::Dict all;
    all.set("parameters", trainer.parameters());
    all.set("optimizer", optim::to_value(optimizer.state_dict()));
    return all;
}

void on_ranks(int size, const sim::RankProgram& program) {
    sim::WorldOptions world;
    world.size = size;
    sim::rethrow_first(sim::run_ranks(world, program));
}

}  // namespace swaplab::support
