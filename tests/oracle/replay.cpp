#include "replay.hpp"

#include "hex.hpp"

#include "swaplab/harness/specimen.hpp"
#include "swaplab/optim/adamw.hpp"
#include "swaplab/optim/swap_adamw.hpp"
#include "swaplab/sim/world.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>

namespace swaplab::oracle {
namespace {

optim::Tensor device_tensor(sim::Device& device, sim::StreamRef stream, const std::string& tag,
                            const Shape& local_shape, std::optional<optim::ShardSpec> shard) {
    const auto bytes = static_cast<std::uint64_t>(optim::numel(local_shape)) * sizeof(float);
    return {sim::DType::float32, local_shape,
            optim::make_device_storage(device, bytes, stream, tag), std::move(shard)};
}

optim::ParameterPtr make_parameter(sim::Device& device, sim::StreamRef stream, int rank, int world,
                                   const std::string& name, const Shape& global_shape) {
    std::optional<optim::ShardSpec> shard;
    Shape local_shape = global_shape;
    if (world > 1) {
        shard = optim::ShardSpec{global_shape, {world}, {optim::Placement::shard(0)}, {}};
        local_shape = shard->box_of(rank).value().sizes;
    }
    auto parameter = std::make_shared<optim::Parameter>();
    parameter->name = name;
    parameter->data = device_tensor(device, stream, "param " + name, local_shape, shard);
    parameter->grad = device_tensor(device, stream, "grad " + name, local_shape, shard);
    return parameter;
}

std::unique_ptr<optim::Optimizer> make_optimizer(sim::Device& device,
                                                 sim::Communicator& communicator,
                                                 std::vector<optim::ParamGroup> groups,
                                                 const Variant& variant) {
    switch (variant.what) {
        case Variant::Class::specimen:
            return harness::make_specimen(device, communicator, std::move(groups), variant.defects);
        case Variant::Class::swap_adamw:
            return std::make_unique<optim::SwapAdamW>(device, communicator, std::move(groups));
        case Variant::Class::adamw:
            break;
    }
    return std::make_unique<optim::AdamW>(device, communicator, std::move(groups));
}

std::string far_apart_floats(const Floats& found, const Floats& expected, std::size_t steps) {
    if (found.size() != expected.size()) {
        return fmt::format("{} elements, expected {}", found.size(), expected.size());
    }
    float largest = 0;
    for (const float value : expected) {
        largest = std::isfinite(value) ? std::max(largest, std::fabs(value)) : largest;
    }
    const double bound =
        std::ldexp(static_cast<double>(largest), -23) * std::max(4.0, static_cast<double>(steps));
    for (std::size_t i = 0; i < found.size(); ++i) {
        const double distance =
            std::fabs(static_cast<double>(found[i]) - static_cast<double>(expected[i]));
        if (!same_float(found[i], expected[i]) && !(distance <= bound)) {
            return fmt::format("element {} expected {}, found {}", i, hex_of({expected[i]}),
                               hex_of({found[i]}));
        }
    }
    return "";
}

}  // namespace

std::optional<Variant> variant_named(const std::string& name) {
    if (name == "V0") {
        return Variant{Variant::Class::specimen,
                       {"stale_groups", "stale_moments", "device_init", "device_cast", "cast_stays",
                        "local_moments", "none_leaf"}};
    }
    if (name == "V1") {
        return Variant{Variant::Class::specimen,
                       {"device_init", "device_cast", "local_moments", "none_leaf"}};
    }
    if (name == "V2") {
        return Variant{Variant::Class::swap_adamw, {}};
    }
    if (name == "AdamW") {
        return Variant{Variant::Class::adamw, {}};
    }
    return std::nullopt;
}

Floats local_rows(const Floats& full, const Shape& global_shape, int world, int rank) {
    if (world == 1) {
        return full;
    }
    const optim::ShardSpec shard{global_shape, {world}, {optim::Placement::shard(0)}, {}};
    const optim::Box box = shard.box_of(rank).value();
    const std::int64_t row = optim::numel(Shape(global_shape.begin() + 1, global_shape.end()));
    const auto begin = full.begin() + std::min(box.offsets[0], global_shape[0]) * row;
    return {begin, begin + box.sizes[0] * row};
}

const Shape& shape_of(const ModelSpec& model, const std::string& name) {
    return std::find_if(model.shapes.begin(), model.shapes.end(),
                        [&](const auto& entry) { return entry.first == name; })
        ->second;
}

std::vector<std::pair<std::string, Shape>> read_shapes(const Value& object) {
    std::vector<std::pair<std::string, Shape>> shapes;
    for (const auto& [name, sizes] : members(object)) {
        shapes.emplace_back(text(name), shape(sizes));
    }
    return shapes;
}

Values read_values(const Value& object) {
    Values values;
    for (const auto& [name, bits] : members(object)) {
        values[text(name)] = floats_from_hex(text(bits));
    }
    return values;
}

Moments read_moments(const Value& object) {
    Moments moments;
    for (const auto& [name, leaves] : members(object)) {
        for (const auto& [key, bits] : members(leaves)) {
            if (!bits.is_none()) {
                moments[text(name)][text(key)] = floats_from_hex(text(bits));
            }
        }
    }
    return moments;
}

Moments moments_of(const optim::StateDict& state_dict) {
    Moments moments;
    for (const auto& [fqn, leaves] : state_dict.state) {
        for (const auto& [key, value] : leaves.items) {
            const auto* tensor = value.get_if<optim::Tensor>();
            if (tensor != nullptr && text(key) != "step") {
                moments[fqn][text(key)] = optim::to_floats(*tensor);
            }
        }
    }
    return moments;
}

bool same_values(const Values& a, const Values& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& p, const auto& q) {
        return p.first == q.first && same_floats(p.second, q.second);
    });
}

bool same_moments(const Moments& a, const Moments& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& p, const auto& q) {
        return p.first == q.first && same_values(p.second, q.second);
    });
}

bool same_entry(const Entry& a, const Entry& b) {
    return a.steps == b.steps && same_values(a.params, b.params) && same_moments(a.used, b.used);
}

std::string far_apart(const Values& found, const Values& expected, std::size_t steps) {
    for (const auto& [name, values] : expected) {
        const auto other = found.find(name);
        const std::string problem =
            other == found.end() ? "is missing" : far_apart_floats(other->second, values, steps);
        if (!problem.empty()) {
            return name + ": " + problem;
        }
    }
    return found.size() == expected.size() ? "" : "more keys than expected";
}

std::string far_apart(const Moments& found, const Moments& expected, std::size_t steps) {
    for (const auto& [name, values] : expected) {
        const auto other = found.find(name);
        const std::string problem =
            other == found.end() ? "no state" : far_apart(other->second, values, steps);
        if (!problem.empty()) {
            return name + "." + problem;
        }
    }
    return "";
}

Run::Run(sim::Device& device, sim::Communicator& communicator, const ModelSpec& model,
         const Variant& variant, const Values& params)
    : model_(model), rank_(communicator.rank()), stream_(device, "model") {
    for (const auto& [name, global_shape] : model.shapes) {
        params_.push_back(
            make_parameter(device, stream_, communicator.rank(), model.world, name, global_shape));
    }
    set_params(params);
    std::vector<optim::ParamGroup> groups;
    for (const GroupSpec& spec : model.groups) {
        optim::ParamGroup group;
        group.options = spec.options;
        for (const std::string& name : spec.names) {
            group.params.push_back(
                *std::find_if(params_.begin(), params_.end(),
                              [&](const auto& param) { return param->name == name; }));
        }
        groups.push_back(std::move(group));
    }
    optimizer_ = make_optimizer(device, communicator, std::move(groups), variant);
}

void Run::write(const optim::Tensor& tensor, const Floats& full) const {
    const Floats mine = local_rows(full, tensor.global_shape(), model_.world, rank_);
    tensor.storage().write(0, std::as_bytes(std::span(mine)));
}

void Run::set_params(const Values& full) {
    for (const auto& param : params_) {
        write(param->data, full.at(param->name));
    }
}

void Run::step(const Values& gradients) {
    for (const auto& param : params_) {
        write(param->grad, gradients.at(param->name));
        param->has_grad = true;
    }
    optimizer_->step();
    for (const auto& param : params_) {
        param->has_grad = false;
    }
}

Entry Run::entry() const {
    Entry entry;
    for (const auto& param : params_) {
        entry.params[param->name] = optim::to_floats(param->data);
    }
    const optim::StateDict shown = optimizer_->state_dict();
    entry.shown = moments_of(shown);
    entry.used = moments_of(optimizer_->step_state());
    for (const auto& [fqn, leaves] : shown.state) {
        const Value* step = leaves.find("step");
        if (step != nullptr) {
            entry.steps[fqn] = optim::to_floats(*step->get_if<optim::Tensor>()).at(0);
        }
    }
    return entry;
}

void on_ranks(int world, const std::function<void(sim::Device&, sim::Communicator&)>& program) {
    sim::rethrow_first(sim::run_ranks({world, 1}, [&](sim::Communicator& communicator) {
        sim::SimulatedDeviceOptions options;
        options.rank = communicator.rank();
        const auto device = sim::make_simulated_device(options);
        program(*device, communicator);
    }));
}

}  // namespace swaplab::oracle
