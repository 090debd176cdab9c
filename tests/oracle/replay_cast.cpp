#include "checks.hpp"
#include "replay.hpp"

#include "swaplab/sim/memory_ledger.hpp"

#include <fmt/format.h>

namespace swaplab::oracle {
namespace {

using sim::MemoryKind;
using sim::MemoryLedger;

/// Device bytes of one load, as the file counts them.
struct Figures {
    std::uint64_t param_bytes = 0;
    std::uint64_t construction_peak = 0;
    std::int64_t after_construction = 0;
    std::uint64_t load_peak = 0;
    std::int64_t left_after_load = 0;
    bool moments_on_device = false;
};

/// "0": {shape}, ... as the parameters of one group.
ModelSpec model_of(const Value& shapes, bool amsgrad) {
    ModelSpec model;
    model.groups.emplace_back();
    model.groups[0].options.amsgrad = amsgrad;
    for (const Value& one : items(shapes)) {
        const std::string name = "p" + std::to_string(model.shapes.size());
        model.shapes.emplace_back(name, shape(one));
        model.groups[0].names.push_back(name);
    }
    return model;
}

Values constant(const ModelSpec& model, float value) {
    Values values;
    for (const auto& [name, sizes] : model.shapes) {
        values[name] = Floats(static_cast<std::size_t>(optim::numel(sizes)), value);
    }
    return values;
}

bool has_device_moment(const optim::StateDict& state_dict) {
    for (const auto& [fqn, leaves] : state_dict.state) {
        for (const auto& [key, value] : leaves.items) {
            const auto* tensor = value.get_if<optim::Tensor>();
            if (tensor != nullptr && text(key) != "step" &&
                tensor->memory() == MemoryKind::device) {
                return true;
            }
        }
    }
    return false;
}

/// A dict that was saved in host memory after one step.
optim::StateDict saved_dict(const ModelSpec& model, const Variant& variant) {
    optim::StateDict saved;
    on_ranks(1, [&](sim::Device& device, sim::Communicator& communicator) {
        Run run(device, communicator, model, variant, constant(model, 1.0F));
        run.step(constant(model, 0.5F));
        saved = run.optimizer().state_dict();
    });
    return saved;
}

Figures measure(const ModelSpec& model, const Variant& variant) {
    const optim::StateDict saved = saved_dict(model, variant);
    Figures figures;
    on_ranks(1, [&](sim::Device& device, sim::Communicator& communicator) {
        MemoryLedger::Window construction(device.ledger());
        Run run(device, communicator, model, variant, constant(model, 1.0F));
        std::uint64_t model_bytes = 0;
        for (const auto& param : run.params()) {
            figures.param_bytes += param->data.local_bytes();
            model_bytes += param->data.local_bytes() + param->grad.local_bytes();
        }
        figures.construction_peak = construction.rise(MemoryKind::device) - model_bytes;
        figures.after_construction =
            construction.kept(MemoryKind::device) - static_cast<std::int64_t>(model_bytes);
        MemoryLedger::Window load(device.ledger());
        run.optimizer().load_state_dict(saved);
        figures.load_peak = load.rise(MemoryKind::device);
        figures.left_after_load = load.kept(MemoryKind::device);
        figures.moments_on_device =
            has_device_moment(run.optimizer().state_dict(optim::Snapshot::live));
    });
    return figures;
}

std::string compare(const Figures& found, const Value& row) {
    const auto off = [&](const char* name, std::int64_t bytes) {
        const std::int64_t expected = integer(at(row, name));
        return bytes == expected ? ""
                                 : fmt::format("{} expected {}, found {}", name, expected, bytes);
    };
    for (const std::string& problem :
         {off("param_bytes", static_cast<std::int64_t>(found.param_bytes)),
          off("construction_peak_over_params", static_cast<std::int64_t>(found.construction_peak)),
          off("after_construction_over_params", found.after_construction),
          off("load_peak_over_before", static_cast<std::int64_t>(found.load_peak)),
          off("left_after_load_over_before", found.left_after_load),
          off("left_after_load_and_dict_released", found.left_after_load)}) {
        if (!problem.empty()) {
            return problem;
        }
    }
    const std::string devices = found.moments_on_device ? "cuda" : "cpu";
    return texts(at(row, "moment_devices_after_load")) == std::vector<std::string>{devices}
               ? ""
               : "moments after the load are on " + devices;
}

/// The shapes of a set, which only rows about casts spell out.
const Value* shapes_of_set(const Value& file, const std::string& set) {
    for (const Value& row : items(at(file, "cast"))) {
        if (text(at(row, "set")) == set) {
            return &at(row, "shapes");
        }
    }
    return nullptr;
}

}  // namespace

void check_cast_spy(const Value& file, Tally& tally) {
    require_keys(file, {"cast", "device"}, {"note"});
    tally.unsupported("calls of Python's cast",
                      static_cast<std::int64_t>(items(at(file, "cast")).size()));
    each_row(at(file, "device"), "device", tally, [&](const Value& row, const std::string&) {
        require_keys(row, {"set", "dtype", "amsgrad", "variant", "param_bytes",
                           "construction_peak_over_params", "after_construction_over_params",
                           "load_peak_over_before", "left_after_load_over_before",
                           "moment_devices_after_load", "left_after_load_and_dict_released"});
        const std::string& set = text(at(row, "set"));
        const std::string& name = text(at(row, "variant"));
        const auto variant = variant_named(name);
        const Value* shapes = shapes_of_set(file, set);
        if (text(at(row, "dtype")) != "float32") {
            tally.unsupported("dtype " + text(at(row, "dtype")));
        } else if (!variant || shapes == nullptr) {
            tally.unsupported(variant ? "set without shapes" : "variant " + name);
        } else {
            const bool amsgrad = flag(at(row, "amsgrad"));
            tally.row(fmt::format("{} {} amsgrad={}", set, name, amsgrad),
                      compare(measure(model_of(*shapes, amsgrad), *variant), row));
        }
    });
}

}  // namespace swaplab::oracle
