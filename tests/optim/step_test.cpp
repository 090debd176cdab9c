#include "support/training.hpp"

#include "swaplab/optim/adamw.hpp"
#include "swaplab/optim/swap_adamw.hpp"
#include "swaplab/sim/error.hpp"

#include <cmath>

namespace swaplab::optim {
namespace {

using sim::MemoryKind;
using sim::Schedule;
using support::everything;
using support::on_ranks;
using support::ParamSpec;
using support::Trainer;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

const std::vector<ParamSpec> uneven_model{{"a", {5, 3}, {}}, {"empty", {0, 4}, {}}, {"one", {}, {}},
                                          {"b", {7}, {}},    {"c", {4, 4}, {}},     {"d", {1}, {}}};

std::vector<ParamGroup> three_groups(const Trainer& trainer) {
    AdamWOptions decayed{0.01, 0.9, 0.999, 1e-8, 0.1};
    AdamWOptions amsgrad{0.02, 0.5, 0.5, 1e-6, 0.0, true, false};
    AdamWOptions maximize{0.005, 0.0, 0.95, 1e-3, 0.01, false, true};
    return {trainer.group(decayed, {"a", "empty", "one"}), trainer.group(amsgrad, {"b", "c"}),
            trainer.group(maximize, {"d"})};
}

/// Five steps with changing gradients, some of them absent, and a schedule through the groups.
Value trained(Trainer& trainer, Optimizer& optimizer) {
    for (std::int64_t step = 0; step < 5; ++step) {
        optimizer.param_groups()[1].options.lr = 0.02 / static_cast<double>(1 + step);
        trainer.set_gradients(step, step == 1   ? std::vector<std::string>{"b", "empty"}
                                    : step == 3 ? std::vector<std::string>{"a", "c", "one"}
                                                : std::vector<std::string>{});
        optimizer.step();
    }
    return everything(trainer, optimizer);
}

Value reference_run() {
    Value out;
    on_ranks(1, [&](sim::Communicator& communicator) {
        Trainer trainer(communicator, uneven_model);
        AdamW adamw(trainer.device(), communicator, three_groups(trainer));
        out = trained(trainer, adamw);
    });
    return out;
}

struct Ring {
    std::int64_t bucket_elements;
    int slots;
    Schedule schedule;
};

class SwapAdamWGrid : public ::testing::TestWithParam<Ring> {};

TEST_P(SwapAdamWGrid, EqualsDeviceResidentAdamWBitForBitWithoutFindings) {
    const Value reference = reference_run();
    on_ranks(1, [&](sim::Communicator& communicator) {
        sim::SimulatedDeviceOptions device;
        device.schedule = GetParam().schedule;
        device.page_guards = device.schedule == Schedule::latest;
        Trainer trainer(communicator, uneven_model, device);
        {
            SwapAdamW swap(trainer.device(), communicator, three_groups(trainer),
                           {GetParam().bucket_elements, GetParam().slots});
            EXPECT_TRUE(same_value(trained(trainer, swap), reference));
        }
        EXPECT_THAT(trainer.findings(), IsEmpty());
    });
}

std::vector<Ring> all_rings() {
    std::vector<Ring> rings;
    for (const std::int64_t elements : {1, 3, 8, 512, 1024, 1 << 20}) {
        for (const int slots : {1, 2, 3, 4}) {
            for (const Schedule schedule : {Schedule::fifo, Schedule::random, Schedule::latest}) {
                rings.push_back({elements, slots, schedule});
            }
        }
    }
    return rings;
}

std::string name_of_ring(const ::testing::TestParamInfo<Ring>& ring) {
    return std::to_string(ring.param.bucket_elements) + "x" + std::to_string(ring.param.slots) +
           "_" + std::string(sim::name_of(ring.param.schedule));
}

INSTANTIATE_TEST_SUITE_P(AllRings, SwapAdamWGrid, ::testing::ValuesIn(all_rings()), name_of_ring);

/// One rank, a model of four parameters of 8, 8, 3 and 0 elements in buckets of 4.
void on_one_rank(const std::function<void(Trainer&, SwapAdamW&)>& test,
                 const SwapAdamWOptions& options = {4, 3},
                 const sim::SimulatedDeviceOptions& device = {}) {
    on_ranks(1, [&](sim::Communicator& communicator) {
        Trainer trainer(communicator,
                        {{"a", {8}, {}}, {"b", {2, 4}, {}}, {"c", {3}, {}}, {"e", {0}, {}}},
                        device);
        {
            SwapAdamW swap(trainer.device(), communicator, {trainer.group()}, options);
            test(trainer, swap);
        }
        EXPECT_THAT(trainer.findings(), IsEmpty());
    });
}

std::int64_t step_of(const Optimizer& optimizer, const std::string& name) {
    const StateDict dict = optimizer.state_dict();
    return std::lround(to_floats(*dict.find(name)->find("step")->get_if<Tensor>())[0]);
}

TEST(SwapAdamWMemory, StepPeakIsResidentPlusSlotsOfTheLargestBucket) {
    for (const int slots : {1, 2, 3, 7}) {
        on_one_rank(
            [&](Trainer& trainer, SwapAdamW& swap) {
                trainer.set_gradients(0);
                EXPECT_EQ(swap.bucket_count(), 5);
                EXPECT_EQ(swap.slot_bytes(), 4U * 2 * 4);
                const sim::MemoryLedger::Window window(trainer.device().ledger());
                swap.step();
                EXPECT_EQ(window.before(MemoryKind::device), trainer.resident_bytes());
                EXPECT_EQ(window.rise(MemoryKind::device),
                          std::min<std::uint64_t>(static_cast<std::uint64_t>(slots), 5) *
                              swap.slot_bytes());
                EXPECT_EQ(window.kept(MemoryKind::device), 0);
                EXPECT_EQ(window.rise(MemoryKind::pinned), 0U);
                EXPECT_EQ(window.rise(MemoryKind::host), 0U);
            },
            {4, slots});
    }
}

TEST(SwapAdamWMemory, OnlyTouchedBucketsTakeSlotsAndCrossTheLink) {
    on_one_rank([](Trainer& trainer, SwapAdamW& swap) {
        trainer.set_gradients(0, {"a", "b"});
        EXPECT_EQ(swap.touched_buckets(), 1);
        const std::size_t before = trainer.device().trace().size();
        const sim::MemoryLedger::Window window(trainer.device().ledger());
        swap.step();
        EXPECT_EQ(window.rise(MemoryKind::device), swap.slot_bytes());
        std::uint64_t copied_bytes = 0;
        for (std::size_t i = before; i < trainer.device().trace().size(); ++i) {
            const sim::TraceEvent& event = trainer.device().trace()[i];
            copied_bytes += event.operation.starts_with("copy") ? event.bytes : 0;
        }
        EXPECT_EQ(copied_bytes, 2U * (3 * 2 * 4));
    });
}

TEST(SwapAdamWMemory, ConstructionTakesPinnedMemoryOnly) {
    on_ranks(1, [](sim::Communicator& communicator) {
        Trainer trainer(communicator, uneven_model);
        const sim::MemoryLedger::Window window(trainer.device().ledger());
        const SwapAdamW swap(trainer.device(), communicator, three_groups(trainer), {8, 3});
        EXPECT_EQ(window.rise(MemoryKind::device), 0U);
        EXPECT_EQ(window.rise(MemoryKind::host), 0U);
        // Buckets of 8, 8 | 8, 8, 7 | 1 elements; all but the last fill a page each.
        EXPECT_EQ(swap.bucket_count(), 6);
        EXPECT_EQ(trainer.device().ledger().tagged(MemoryKind::pinned, "moments"),
                  5U * 4096 + 1 * 2 * 4);
    });
}

TEST(SwapAdamWMemory, KeptSlotsStayAndAreUsedAgain) {
    on_one_rank(
        [](Trainer& trainer, SwapAdamW& swap) {
            trainer.set_gradients(0, {"a", "b"});
            swap.step();
            const std::uint64_t one = trainer.resident_bytes() + swap.slot_bytes();
            EXPECT_EQ(trainer.device().ledger().now(MemoryKind::device), one);
            trainer.train(swap, 1, 2);
            EXPECT_EQ(trainer.device().ledger().now(MemoryKind::device),
                      trainer.resident_bytes() + 2 * swap.slot_bytes());
            EXPECT_EQ(trainer.device().ledger().peak(MemoryKind::device),
                      trainer.resident_bytes() + 2 * swap.slot_bytes());
        },
        {4, 2, true});
}

TEST(SwapAdamWMemory, OutOfMemoryInAStepChangesNothing) {
    sim::SimulatedDeviceOptions device;
    // Eight regions of 256 B hold parameters and gradients (the empty ones none), two slots fit.
    device.capacity_bytes = 8U * 256;
    on_one_rank(
        [](Trainer& trainer, SwapAdamW& swap) {
            trainer.set_gradients(0);
            const Value before = everything(trainer, swap);
            const std::uint64_t used = trainer.device().ledger().now(MemoryKind::device);
            try {
                swap.step();
                FAIL() << "three slots fit";
            } catch (const sim::OutOfDeviceMemory& error) {
                EXPECT_EQ(error.report().tag, "slot 2");
            }
            EXPECT_TRUE(same_value(everything(trainer, swap), before));
            EXPECT_FALSE(swap.torn());
            EXPECT_EQ(trainer.device().ledger().now(MemoryKind::device), used);
            trainer.set_gradients(0, {"a", "b"});
            swap.step();
            EXPECT_EQ(step_of(swap, "c"), 1);
        },
        {4, 3}, device);
}

TEST(SwapAdamWSteps, ParametersWithoutGradientAreNotTouched) {
    on_one_rank([](Trainer& trainer, SwapAdamW& swap) {
        trainer.set_gradients(0, {"b"});
        const Dict before = trainer.parameters();
        swap.step();
        EXPECT_TRUE(same_value(*trainer.parameters().find("b"), *before.find("b")));
        EXPECT_FALSE(same_value(*trainer.parameters().find("a"), *before.find("a")));
        EXPECT_EQ(step_of(swap, "a"), 1);
        EXPECT_EQ(step_of(swap, "b"), 0);
        EXPECT_EQ(step_of(swap, "e"), 1);
    });
}

TEST(SwapAdamWSteps, NoGradientAtAllIsAStepThatDoesNothing) {
    on_one_rank([](Trainer& trainer, SwapAdamW& swap) {
        const Value before = everything(trainer, swap);
        swap.step();
        EXPECT_TRUE(same_value(everything(trainer, swap), before));
    });
}

TEST(SwapAdamWSteps, GradientOfAnotherShapeIsRefused) {
    on_one_rank([](Trainer& trainer, SwapAdamW& swap) {
        trainer.set_gradients(0);
        const Tensor right = trainer.parameter("c")->grad;
        trainer.parameter("c")->grad = trainer.parameter("a")->grad;
        EXPECT_THROW(swap.step(), sim::ArgumentError);
        EXPECT_EQ(step_of(swap, "a"), 0);
        trainer.parameter("c")->grad = right;
        swap.step();
        EXPECT_EQ(step_of(swap, "c"), 1);
    });
}

TEST(SwapAdamWSteps, CounterStopsBeforeACheckpointCannotHoldIt) {
    on_one_rank([](Trainer& trainer, SwapAdamW& swap) {
        StateDict saved = swap.state_dict();
        saved.find("a")->set("step", make_scalar(16777215.0F));
        swap.load_state_dict(saved);
        trainer.train(swap, 0, 1);
        EXPECT_EQ(step_of(swap, "a"), 16777216);
        trainer.set_gradients(1);
        EXPECT_THROW(swap.step(), sim::ArgumentError);
        EXPECT_EQ(step_of(swap, "b"), 1);
    });
}

TEST(SwapAdamWSteps, SameTraceForSameSteps) {
    const auto run = [] {
        std::vector<sim::TraceEvent> trace;
        on_one_rank([&](Trainer& trainer, SwapAdamW& swap) {
            trainer.train(swap, 0, 2);
            trace = trainer.device().trace();
        });
        return trace;
    };
    EXPECT_EQ(run(), run());
}

TEST(SwapAdamWSteps, AFailedLaunchLeavesStateAndParametersTorn) {
    on_ranks(1, [](sim::Communicator& communicator) {
        Trainer trainer(communicator, {{"a", {8}, {}}});
        {
            SwapAdamW swap(trainer.faulty_device(), communicator, {trainer.group()}, {4, 3});
            const StateDict saved = swap.state_dict();
            trainer.set_gradients(0);
            trainer.faults().arm({{.operation = "launch", .ordinal = 2}});
            EXPECT_THROW(swap.step(), sim::DeviceError);
            EXPECT_TRUE(trainer.faults().disarm());
            EXPECT_TRUE(swap.torn());
            EXPECT_THROW(swap.step(), TornState);
            EXPECT_THROW(static_cast<void>(swap.state_dict()), TornState);
            swap.load_state_dict(saved);
            EXPECT_THROW(swap.step(), TornState) << "the parameters are still half stepped";
            swap.set_parameters_torn(false);
            EXPECT_FALSE(swap.torn());
            swap.step();
            EXPECT_EQ(step_of(swap, "a"), 1);
        }
        EXPECT_THAT(trainer.findings(), IsEmpty());
    });
}

TEST(AdamWSteps, StateAppearsWithTheFirstGradient) {
    on_ranks(1, [](sim::Communicator& communicator) {
        Trainer trainer(communicator, {{"a", {3}, {}}, {"b", {2}, {}}});
        AdamW adamw(trainer.device(), communicator, {trainer.group()});
        EXPECT_THAT(adamw.state_dict().state, IsEmpty());
        trainer.set_gradients(0, {"b"});
        const sim::MemoryLedger::Window window(trainer.device().ledger());
        adamw.step();
        EXPECT_EQ(window.kept(MemoryKind::device), 2 * 3 * 4);
        EXPECT_EQ(trainer.device().ledger().tagged(MemoryKind::device, "a.exp_avg"), 12U);
        EXPECT_EQ(adamw.state_dict().state.size(), 1U);
        adamw.init_state();
        EXPECT_EQ(adamw.state_dict().state.size(), 2U);
        EXPECT_EQ(step_of(adamw, "a"), 1);
        EXPECT_EQ(step_of(adamw, "b"), 0);
    });
}

TEST(AdamWSteps, OutOfMemoryForTheFirstStateChangesNothing) {
    on_ranks(1, [](sim::Communicator& communicator) {
        sim::SimulatedDeviceOptions device;
        device.capacity_bytes = 7U * 256;
        Trainer trainer(communicator, {{"a", {3}, {}}, {"b", {2}, {}}}, device);
        {
            AdamW adamw(trainer.device(), communicator, {trainer.group()});
            trainer.set_gradients(0);
            const Dict before = trainer.parameters();
            EXPECT_THROW(adamw.step(), sim::OutOfDeviceMemory);
            EXPECT_TRUE(same_value(trainer.parameters(), before));
            EXPECT_THAT(adamw.state_dict().state, IsEmpty());
            EXPECT_FALSE(adamw.torn());
        }
        EXPECT_THAT(trainer.findings(), IsEmpty());
    });
}

TEST(ShardedSteps, EveryWorldGivesTheSameGlobalBits) {
    const auto run = [](int size) {
        std::vector<float> all(12);
        on_ranks(size, [&](sim::Communicator& communicator) {
            Trainer trainer(communicator, {{"w", {6, 2}, {Placement::shard(0)}}});
            SwapAdamW swap(trainer.device(), communicator, {trainer.group()}, {3, 2});
            trainer.train(swap, 0, 3);
            const StateDict dict = swap.state_dict();
            const Tensor& moment = *dict.find("w")->find("exp_avg")->get_if<Tensor>();
            EXPECT_EQ(moment.shard(), trainer.parameter("w")->data.shard());
            const Box box = moment.shard()->box_of(communicator.rank()).value();
            const std::vector<float> local = to_floats(moment);
            std::copy(local.begin(), local.end(), all.begin() + box.offsets[0] * 2);
        });
        return all;
    };
    const std::vector<float> whole = run(1);
    EXPECT_EQ(run(2), whole);
    EXPECT_EQ(run(4), whole);
}

}  // namespace
}  // namespace swaplab::optim
