#include "fixture.hpp"

#include "swaplab/harness/specimen.hpp"
#include "swaplab/sim/digest.hpp"

#include <fmt/format.h>

#include <cstring>

namespace swaplab::testing {

using optim::Tensor;

namespace {

std::vector<optim::ParamGroup> two_groups(const support::Trainer& rig, bool amsgrad) {
    optim::AdamWOptions first;
    first.lr = 0.01;
    first.amsgrad = amsgrad;
    optim::AdamWOptions second = first;
    second.lr = 0.002;
    second.weight_decay = 0;
    std::vector<optim::ParamGroup> groups{{{}, first, {}}, {{}, second, {}}};
    for (std::size_t i = 0; i < rig.model().size(); ++i) {
        groups[i % 2].params.push_back(rig.model()[i]);
    }
    if (groups[1].params.empty()) {
        groups.pop_back();
    }
    return groups;
}

}  // namespace

std::unique_ptr<optim::Optimizer> make_swap_adamw(sim::Device& device,
                                                  sim::Communicator& communicator,
                                                  std::vector<optim::ParamGroup> groups) {
    return std::make_unique<optim::SwapAdamW>(device, communicator, std::move(groups),
                                              optim::SwapAdamWOptions{4, 2, false});
}

MakeOptimizer specimen_with(std::vector<std::string> defects) {
    return [defects = std::move(defects)](sim::Device& device, sim::Communicator& communicator,
                                          std::vector<optim::ParamGroup> groups) {
        return harness::make_specimen(device, communicator, std::move(groups), defects);
    };
}

EngineRun::EngineRun(sim::Communicator& communicator, harness::Storage& storage,
                     const harness::EngineOptions& options, const MakeOptimizer& make, bool amsgrad,
                     const std::vector<support::ParamSpec>& specs)
    : rig(communicator, specs),
      optimizer(make(rig.faulty_device(), communicator, two_groups(rig, amsgrad))),
      engine(rig.faulty_device(), communicator, storage, rig.model(), *optimizer, options) {}

void EngineRun::train(std::int64_t first, std::int64_t last) {
    for (std::int64_t step = first; step <= last; ++step) {
        rig.set_gradients(step,
                          step < 3 ? std::vector<std::string>{"b"} : std::vector<std::string>{});
        optimizer->step();
    }
}

std::string fingerprint(EngineRun& run) {
    std::string text;
    for (const auto& param : run.rig.model()) {
        text += param->name + " " + sim::sha256_hex(param->data.to_bytes()) + "\n";
    }
    if (run.optimizer->torn()) {
        return text + "torn";
    }
    const optim::StateDict state = run.optimizer->step_state();
    for (const auto& [fqn, leaves] : state.state) {
        for (const auto& [key, value] : leaves.items) {
            if (const auto* tensor = value.get_if<Tensor>()) {
                const bool moment = *key.get_if<std::string>() != "step";
                text += fmt::format("{}.{} {} {}\n", fqn, *key.get_if<std::string>(),
                                    sim::sha256_hex(tensor->to_bytes()),
                                    fmt::ptr(moment ? tensor->storage().data() : nullptr));
            }
        }
    }
    for (const optim::ParamGroup& group : run.optimizer->param_groups()) {
        text += optim::repr(optim::to_dict(group)) + "\n";
    }
    for (const auto kind :
         {sim::MemoryKind::device, sim::MemoryKind::pinned, sim::MemoryKind::host}) {
        text += fmt::format("{} ", run.rig.device().ledger().now(kind));
    }
    return text;
}

std::map<std::string, std::vector<float>> global_state(sim::Communicator& communicator,
                                                       EngineRun& run) {
    std::map<std::string, std::vector<float>> global;
    const auto gather = [&](const std::string& name, const Tensor& part, bool replicated) {
        const std::vector<std::byte> mine = part.to_bytes();
        for (const sim::Bytes& bytes : communicator.all_gather(mine)) {
            std::vector<float>& all = global[name];
            const std::size_t begin = replicated ? 0 : all.size();
            all.resize(begin + bytes.size() / sizeof(float));
            if (!bytes.empty()) {
                std::memcpy(all.data() + begin, bytes.data(), bytes.size());
            }
        }
    };
    for (const auto& param : run.rig.model()) {
        gather(param->name, param->data, false);
    }
    for (const auto& [fqn, leaves] : run.optimizer->step_state().state) {
        for (const auto& [key, value] : leaves.items) {
            if (const auto* tensor = value.get_if<Tensor>()) {
                const std::string& name = *key.get_if<std::string>();
                gather(fqn + "." + name, *tensor, name == "step");
            }
        }
    }
    return global;
}

}  // namespace swaplab::testing
