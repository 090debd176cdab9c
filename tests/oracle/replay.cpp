#include "replay.hpp"

#include "hex.hpp"

#include "swaplab/harness/specimen.hpp"
#include "swaplab/optim/adamw.hpp"
#include "swaplab/optim/swap_adamw.hpp"
#include "swaplab/sim/error.hpp"
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

double largest_of(const Floats& values) {
    float largest = 0;
    for (const float value : values) {
        largest = std::isfinite(value) ? std::max(largest, std::fabs(value)) : largest;
    }
    return static_cast<double>(largest);
}

std::string floats_apart(const Floats& found, const Floats& expected, double bound) {
    if (found.size() != expected.size()) {
        return fmt::format("{} elements, expected {}", found.size(), expected.size());
    }
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

/// Compares what two maps hold under the same key; a key of one alone is a difference, too.
template <class Map, class Compare>
std::string maps_apart(const Map& found, const Map& expected, Compare compare) {
    for (const auto& [name, values] : expected) {
        const auto other = found.find(name);
        const std::string problem =
            other == found.end() ? "is missing" : compare(other->second, values);
        if (!problem.empty()) {
            return name + ": " + problem;
        }
    }
    for (const auto& entry : found) {
        if (!expected.contains(entry.first)) {
            return entry.first + ": is not expected";
        }
    }
    return "";
}

/// optim::to_dict() writes a tuple, JSON a list.
const std::vector<Value>& both_betas(const Value& betas) {
    const auto* tuple = betas.get_if<optim::Tuple>();
    const auto& both = tuple == nullptr ? items(betas) : tuple->items;
    if (both.size() != 2) {
        throw sim::ArgumentError("expected two betas, found " + optim::repr(betas));
    }
    return both;
}

}  // namespace

std::optional<Variant> variant_named(const std::string& name) {
    if (name == "V0") {
        return Variant{Variant::Class::specimen,
                       {"stale_groups", "stale_moments", "device_init", "device_cast", "cast_stays",
                        "local_moments", "none_leaf", "alias_on_load"}};
    }
    if (name == "V1") {
        return Variant{
            Variant::Class::specimen,
            {"device_init", "device_cast", "local_moments", "none_leaf", "alias_on_load"}};
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
    const auto found = std::find_if(model.shapes.begin(), model.shapes.end(),
                                    [&](const auto& entry) { return entry.first == name; });
    if (found == model.shapes.end()) {
        throw sim::ArgumentError("no parameter " + name, {{"parameter", name}});
    }
    return found->second;
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

Values read_full(const Value& object, const std::vector<std::pair<std::string, Shape>>& shapes) {
    Values values = read_values(object);
    for (const auto& [name, sizes] : shapes) {
        const auto found = values.find(name);
        if (found == values.end() ||
            static_cast<std::int64_t>(found->second.size()) != optim::numel(sizes)) {
            throw sim::ArgumentError("expected all elements of " + name + " " +
                                     optim::to_string(sizes));
        }
    }
    if (values.size() != shapes.size()) {
        throw sim::ArgumentError("values of a parameter that has no shape");
    }
    return values;
}

optim::AdamWOptions read_options(const Value& object, optim::AdamWOptions options) {
    for (const auto& [name, option] : {std::pair{"lr", &options.lr},
                                       {"eps", &options.eps},
                                       {"weight_decay", &options.weight_decay}}) {
        if (const Value* value = find(object, name)) {
            *option = number(*value);
        }
    }
    if (const Value* betas = find(object, "betas")) {
        options.beta1 = number(both_betas(*betas)[0]);
        options.beta2 = number(both_betas(*betas)[1]);
    }
    if (const Value* amsgrad = find(object, "amsgrad")) {
        options.amsgrad = flag(*amsgrad);
    }
    optim::check_options(options);
    return options;
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

bool same_memory(const optim::Tensor& a, const optim::Tensor& b) {
    if (a.local_bytes() != b.local_bytes() || a.local_bytes() == 0) {
        return a.storage_ptr() == b.storage_ptr();
    }
    const std::vector<std::byte> before = a.to_bytes();
    std::vector<std::byte> changed = before;
    changed.front() ^= std::byte{1};
    a.storage().write(0, changed);
    const bool seen = b.to_bytes() == changed;
    a.storage().write(0, before);
    return seen;
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

double params_bound(const Values& expected) {
    double largest = 0;
    for (const auto& entry : expected) {
        largest = std::max(largest, largest_of(entry.second));
    }
    return 2 * std::ldexp(largest, -23);
}

std::string params_apart(const Values& found, const Values& expected) {
    const double bound = params_bound(expected);
    return maps_apart(found, expected, [bound](const Floats& a, const Floats& b) {
        return floats_apart(a, b, bound);
    });
}

std::string moments_apart(const Moments& found, const Moments& expected) {
    return maps_apart(found, expected, [](const Values& ours, const Values& theirs) {
        return maps_apart(ours, theirs, [](const Floats& a, const Floats& b) {
            return floats_apart(a, b, std::ldexp(largest_of(b), -23));
        });
    });
}

std::string steps_apart(const std::map<std::string, float>& found, const Value& expected) {
    std::map<std::string, float> theirs;
    for (const auto& [name, step] : members(expected)) {
        theirs[text(name)] = static_cast<float>(number(step));
    }
    return maps_apart(found, theirs, [](float a, float b) {
        return a == b ? "" : fmt::format("step expected {}, found {}", b, a);
    });
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
    const optim::StateDict used = optimizer_->step_state();
    entry.shown = moments_of(shown);
    entry.used = moments_of(used);
    entry.live = optimizer_->param_groups().at(0).options;
    entry.used_options = read_options(used.param_groups.at(0));
    for (const auto& [fqn, leaves] : shown.state) {
        const Value* step = leaves.find("step");
        if (step != nullptr) {
            entry.steps[fqn] = optim::to_floats(*step->get_if<optim::Tensor>()).at(0);
        }
    }
    return entry;
}

void on_ranks(int world, const std::function<void(sim::Device&, sim::Communicator&)>& program) {
    sim::rethrow_first(sim::run_ranks({.size = world}, [&](sim::Communicator& communicator) {
        sim::SimulatedDeviceOptions options;
        options.rank = communicator.rank();
        const auto device = sim::make_simulated_device(options);
        program(*device, communicator);
    }));
}

}  // namespace swaplab::oracle
