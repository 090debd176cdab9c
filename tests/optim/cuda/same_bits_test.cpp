/// CUDA and the simulated device give the same bits: over the stand-in, or on the GPU where the
/// library path leads to the real library.

#include "support/training.hpp"

#include "swaplab/optim/adamw.hpp"
#include "swaplab/optim/cuda_kernels.hpp"
#include "swaplab/optim/swap_adamw.hpp"
#include "swaplab/sim/cuda/cuda_device.hpp"
#include "swaplab/sim/cuda/standin.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>

namespace swaplab::optim {
namespace {

constexpr std::int64_t steps = 100;

using support::Trainer;
using MakeOptimizer = std::function<std::unique_ptr<Optimizer>(Trainer&, std::vector<ParamGroup>)>;

std::vector<support::ParamSpec> model() {
    return {{"a", {31, 7}, {}}, {"empty", {0, 3}, {}}, {"b", {1}, {}}, {"c", {300}, {}}};
}

Value trained(Trainer& trainer, const AdamWOptions& options, const MakeOptimizer& make) {
    AdamWOptions others = options;
    others.lr *= 0.5;
    const auto optimizer =
        make(trainer, {trainer.group(options, {"a", "empty"}), trainer.group(others, {"b", "c"})});
    for (std::int64_t step = 0; step < steps; ++step) {
        trainer.set_gradients(
            step, step % 3 == 1 ? std::vector<std::string>{"b"} : std::vector<std::string>{});
        optimizer->step();
    }
    return support::everything(trainer, *optimizer);
}

std::unique_ptr<sim::Device> cuda_device() {
    register_cuda_kernels();
    if (sim::Standin* found = sim::standin()) {
        sim::StandinOptions options;
        options.device.schedule = sim::Schedule::random;
        found->configure(options);
    }
    return sim::make_cuda_device({});
}

/// Same bits on both, and the same memory charged.
void expect_same(const AdamWOptions& options, const MakeOptimizer& make) {
    support::on_ranks(1, [&](sim::Communicator& communicator) {
        Trainer simulated(communicator, model());
        Trainer cuda(communicator, model(), cuda_device());
        EXPECT_TRUE(same_value(trained(simulated, options, make), trained(cuda, options, make)));
        for (const auto kind : {sim::MemoryKind::device, sim::MemoryKind::pinned}) {
            for (const auto size : {sim::Size::requested, sim::Size::rounded}) {
                EXPECT_EQ(simulated.faulty_device().ledger().peak(kind, size),
                          cuda.faulty_device().ledger().peak(kind, size));
            }
        }
        EXPECT_TRUE(simulated.findings().empty());
        if (sim::Standin* found = sim::standin()) {
            for (const sim::Finding& finding : found->device(0).findings()) {
                ADD_FAILURE() << finding.text;
            }
        }
    });
}

MakeOptimizer swap_adamw(const SwapAdamWOptions& options) {
    return [options](Trainer& trainer, std::vector<ParamGroup> groups) {
        return std::make_unique<SwapAdamW>(trainer.faulty_device(), trainer.communicator(),
                                           std::move(groups), options);
    };
}

/// Options that take each branch of the update.
std::vector<AdamWOptions> grid() {
    std::vector<AdamWOptions> all;
    for (const bool amsgrad : {false, true}) {
        for (const bool maximize : {false, true}) {
            for (const double beta1 : {0.9, 0.3, 0.0}) {
                AdamWOptions options;
                options.lr = 1e-2;
                options.beta1 = beta1;
                options.amsgrad = amsgrad;
                options.maximize = maximize;
                options.weight_decay = maximize ? 0.0 : 1e-2;
                all.push_back(options);
            }
        }
    }
    return all;
}

TEST(SameBits, SwapAdamWAfterAHundredStepsForEveryOption) {
    for (const AdamWOptions& options : grid()) {
        for (const std::int64_t bucket_elements : {50, 1000}) {
            expect_same(options, swap_adamw({.bucket_elements = bucket_elements, .slots = 2}));
        }
    }
}

TEST(SameBits, SwapAdamWThatKeepsItsSlots) {
    expect_same({}, swap_adamw({.bucket_elements = 64, .slots = 3, .keep_slots = true}));
}

TEST(SameBits, AdamWAfterAHundredStepsForEveryOption) {
    for (const AdamWOptions& options : grid()) {
        expect_same(options, [](Trainer& trainer, std::vector<ParamGroup> groups) {
            return std::make_unique<AdamW>(trainer.faulty_device(), trainer.communicator(),
                                           std::move(groups));
        });
    }
}

TEST(SameBits, OfMoreSegmentsThanOneLaunchHolds) {
    std::vector<support::ParamSpec> many;
    for (int i = 0; i < 600; ++i) {
        many.push_back({"p" + std::to_string(i), {1 + i % 5}, {}});
    }
    support::on_ranks(1, [&](sim::Communicator& communicator) {
        const auto run = [&](Trainer& trainer) {
            const auto optimizer =
                swap_adamw({.bucket_elements = 100'000})(trainer, {trainer.group({})});
            trainer.train(*optimizer, 0, 3);
            return support::everything(trainer, *optimizer);
        };
        Trainer simulated(communicator, many);
        Trainer cuda(communicator, many, cuda_device());
        EXPECT_TRUE(same_value(run(simulated), run(cuda)));
    });
}

}  // namespace
}  // namespace swaplab::optim
