#include "support/training.hpp"

#include "swaplab/harness/specimen.hpp"
#include "swaplab/optim/adamw.hpp"
#include "swaplab/optim/swap_adamw.hpp"
#include "swaplab/sim/world.hpp"

#include <map>
#include <memory>

namespace swaplab::harness {
namespace {

using optim::AdamWOptions;
using optim::Optimizer;
using optim::ParamGroup;
using optim::StateDict;
using optim::Tensor;
using Rig = support::Trainer;

using Bytes = std::map<std::string, std::vector<std::byte>>;

/// Several shapes that leave ranks short or empty on 2 to 4 ranks.
const std::vector<optim::Placement> rows{optim::Placement::shard(0)};
const std::vector<support::ParamSpec> specs{
    {"a", {5, 3}, rows}, {"b", {7}, rows}, {"c", {1}, rows}, {"d", {0, 4}, rows}};

using Make = std::unique_ptr<Optimizer> (*)(Rig&, sim::Communicator&, std::vector<ParamGroup>);

std::unique_ptr<Optimizer> specimen(Rig& rig, sim::Communicator& communicator,
                                    std::vector<ParamGroup> groups) {
    return make_specimen(rig.device(), communicator, std::move(groups), {});
}
std::unique_ptr<Optimizer> swap_adamw(Rig& rig, sim::Communicator& communicator,
                                      std::vector<ParamGroup> groups) {
    return std::make_unique<optim::SwapAdamW>(rig.device(), communicator, std::move(groups),
                                              optim::SwapAdamWOptions{4, 2, false});
}
std::unique_ptr<Optimizer> adamw(Rig& rig, sim::Communicator& communicator,
                                 std::vector<ParamGroup> groups) {
    return std::make_unique<optim::AdamW>(rig.device(), communicator, std::move(groups));
}

/// Parameters, and what the next step would read; zero moments of a step 0 are left out, since
/// plain AdamW creates them with the first gradient.
Bytes bits_of(const Rig& rig, const Optimizer& optimizer) {
    Bytes result;
    for (const auto& param : rig.model()) {
        result[param->name] = param->data.to_bytes();
    }
    for (const auto& [fqn, leaves] : optimizer.step_state().state) {
        const auto* step = leaves.find("step")->get_if<Tensor>();
        for (const auto& [key, value] : leaves.items) {
            const auto* tensor = value.get_if<Tensor>();
            if (tensor != nullptr && optim::to_floats(*step).at(0) > 0) {
                result[fqn + "." + *key.get_if<std::string>()] = tensor->to_bytes();
            }
        }
    }
    return result;
}

std::vector<ParamGroup> two_groups(const Rig& rig, bool amsgrad) {
    AdamWOptions first;
    first.lr = 0.01;
    first.amsgrad = amsgrad;
    AdamWOptions second = first;
    second.lr = 0.002;
    second.weight_decay = 0;
    second.beta1 = 0.5;
    second.maximize = true;
    return {{{rig.parameter("a"), rig.parameter("c")}, first, {}},
            {{rig.parameter("b"), rig.parameter("d")}, second, {}}};
}

/// Three steps, b without gradient in the first two; save; a new optimizer that already stepped;
/// load; two steps.
Bytes story(sim::Communicator& communicator, Make make, bool amsgrad) {
    Rig rig(communicator, specs);
    auto optimizer = make(rig, communicator, two_groups(rig, amsgrad));
    for (std::int64_t step = 1; step <= 3; ++step) {
        rig.set_gradients(step,
                          step < 3 ? std::vector<std::string>{"b"} : std::vector<std::string>{});
        optimizer->step();
    }
    const StateDict saved = optimizer->state_dict();
    Bytes params;
    for (const auto& param : rig.model()) {
        params[param->name] = param->data.to_bytes();
    }
    Rig fresh(communicator, specs);
    auto resumed = make(fresh, communicator, two_groups(fresh, amsgrad));
    fresh.set_gradients(9);
    resumed->step();
    for (const auto& param : fresh.model()) {
        param->data.storage().write(0, params.at(param->name));
    }
    resumed->load_state_dict(saved);
    for (std::int64_t step = 4; step <= 5; ++step) {
        fresh.set_gradients(step);
        resumed->step();
        rig.set_gradients(step);
        optimizer->step();
    }
    Bytes result = bits_of(fresh, *resumed);
    EXPECT_EQ(result, bits_of(rig, *optimizer)) << "resumed differs from uninterrupted";
    return result;
}

TEST(SpecimenWithoutDefect, EqualsSwapAdamWAndAdamWBitForBit) {
    for (const int ranks : {1, 2, 3}) {
        for (const bool amsgrad : {false, true}) {
            support::on_ranks(ranks, [&](sim::Communicator& communicator) {
                const Bytes ours = story(communicator, swap_adamw, amsgrad);
                EXPECT_EQ(story(communicator, specimen, amsgrad), ours) << ranks << amsgrad;
                EXPECT_EQ(story(communicator, adamw, amsgrad), ours) << ranks << amsgrad;
            });
        }
    }
}

TEST(SpecimenWithoutDefect, LeavesNoFindingUnderAnySchedule) {
    for (const auto schedule :
         {sim::Schedule::fifo, sim::Schedule::random, sim::Schedule::latest}) {
        support::on_ranks(2, [&](sim::Communicator& communicator) {
            sim::SimulatedDeviceOptions options;
            options.schedule = schedule;
            Rig rig(communicator, specs, options);
            auto optimizer = specimen(rig, communicator, two_groups(rig, true));
            rig.set_gradients(1);
            optimizer->step();
            const StateDict saved = optimizer->state_dict();
            optimizer->load_state_dict(saved);
            rig.set_gradients(2);
            optimizer->step();
            optimizer.reset();
            EXPECT_THAT(rig.device().findings(), ::testing::IsEmpty());
        });
    }
}

TEST(SpecimenWithoutDefect, KeepsItsMomentsInPinnedMemory) {
    support::on_ranks(2, [](sim::Communicator& communicator) {
        Rig rig(communicator, specs);
        auto optimizer = specimen(rig, communicator, two_groups(rig, false));
        const StateDict before = optimizer->state_dict(optim::Snapshot::live);
        optimizer->load_state_dict(optimizer->state_dict());
        const StateDict after = optimizer->state_dict(optim::Snapshot::live);
        for (const auto& [fqn, leaves] : after.state) {
            const auto* moment = leaves.find("exp_avg")->get_if<Tensor>();
            EXPECT_EQ(moment->memory(), sim::MemoryKind::pinned);
            EXPECT_EQ(moment->storage_ptr(),
                      before.find(fqn)->find("exp_avg")->get_if<Tensor>()->storage_ptr());
        }
    });
}

TEST(SpecimenWithoutDefect, RefusesOnAllRanksWhatOneRankRefuses) {
    const auto results = sim::run_ranks({.size = 2}, [](sim::Communicator& communicator) {
        Rig rig(communicator, specs);
        auto optimizer = specimen(rig, communicator, {rig.group({})});
        StateDict saved = optimizer->state_dict();
        if (communicator.rank() == 1) {
            saved.find("b")->set("exp_avg", optim::None{});
        }
        try {
            optimizer->load_state_dict(saved);
            ADD_FAILURE() << "not refused on rank " << communicator.rank();
        } catch (const optim::CheckpointRejected& error) {
            ASSERT_EQ(error.mismatches().size(), 1U);
            EXPECT_EQ(error.mismatches()[0].rank, 1);
            EXPECT_EQ(error.mismatches()[0].parameter, "b");
            EXPECT_EQ(error.mismatches()[0].found, "missing");
        }
    });
    sim::rethrow_first(results);
}

}  // namespace
}  // namespace swaplab::harness
