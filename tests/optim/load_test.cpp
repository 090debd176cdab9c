#include "support/training.hpp"

#include "swaplab/optim/adamw.hpp"
#include "swaplab/optim/swap_adamw.hpp"
#include "swaplab/sim/error.hpp"

#include <algorithm>
#include <cmath>

namespace swaplab::optim {
namespace {

using sim::MemoryKind;
using support::everything;
using support::on_ranks;
using support::ParamSpec;
using support::Trainer;
using ::testing::IsEmpty;

const std::vector<ParamSpec> small_model{
    {"a", {5, 2}, {}}, {"b", {3}, {}}, {"one", {}, {}}, {"empty", {0}, {}}};

ParamGroup group_with(const Trainer& trainer, bool amsgrad, double lr = 0.01) {
    AdamWOptions options{lr, 0.5, 0.5, 1e-8, 0.1};
    options.amsgrad = amsgrad;
    return trainer.group(options);
}

/// Everything after `steps` steps without interruption.
Value uninterrupted(bool amsgrad, std::int64_t steps) {
    Value out;
    on_ranks(1, [&](sim::Communicator& communicator) {
        Trainer trainer(communicator, small_model);
        SwapAdamW swap(trainer.device(), communicator, {group_with(trainer, amsgrad)});
        trainer.train(swap, 0, steps);
        out = everything(trainer, swap);
    });
    return out;
}

struct Saved {
    StateDict optimizer;
    Dict parameters;
};

template <class Optim, class... Options>
Saved saved_after(bool amsgrad, std::int64_t steps, const Options&... options) {
    Saved saved;
    on_ranks(1, [&](sim::Communicator& communicator) {
        Trainer trainer(communicator, small_model);
        Optim optimizer(trainer.device(), communicator, {group_with(trainer, amsgrad)}, options...);
        trainer.train(optimizer, 0, steps);
        saved = {optimizer.state_dict(), trainer.parameters()};
    });
    return saved;
}

TEST(Resume, EqualsTheUninterruptedRunAtEveryCutAcrossBucketsAndSlots) {
    constexpr std::int64_t steps = 4;
    for (const bool amsgrad : {false, true}) {
        const Value expected = uninterrupted(amsgrad, steps);
        for (std::int64_t cut = 0; cut <= steps; ++cut) {
            const Saved saved = saved_after<SwapAdamW>(amsgrad, cut, SwapAdamWOptions{3, 2});
            for (const std::int64_t bucket_elements : {1, 4, 1024}) {
                on_ranks(1, [&](sim::Communicator& communicator) {
                    Trainer trainer(communicator, small_model);
                    // Other values on purpose: what a load does not restore shows.
                    SwapAdamW swap(trainer.device(), communicator,
                                   {group_with(trainer, amsgrad, 0.5)}, {bucket_elements, 3});
                    trainer.train(swap, 7, 2);
                    trainer.set_parameters(saved.parameters);
                    swap.load_state_dict(saved.optimizer);
                    trainer.train(swap, cut, steps - cut);
                    EXPECT_TRUE(same_value(everything(trainer, swap), expected))
                        << "cut " << cut << " bucket " << bucket_elements;
                });
            }
        }
    }
}

TEST(Resume, SwapAndPlainAdamWLoadEachOther) {
    const Value expected = uninterrupted(true, 5);
    const Saved from_swap = saved_after<SwapAdamW>(true, 3);
    const Saved from_plain = saved_after<AdamW>(true, 3);
    EXPECT_TRUE(same_value(to_value(from_swap.optimizer), to_value(from_plain.optimizer)));
    on_ranks(1, [&](sim::Communicator& communicator) {
        Trainer trainer(communicator, small_model);
        SwapAdamW swap(trainer.device(), communicator, {group_with(trainer, true, 0.5)});
        trainer.set_parameters(from_plain.parameters);
        swap.load_state_dict(from_plain.optimizer);
        trainer.train(swap, 3, 2);
        EXPECT_TRUE(same_value(everything(trainer, swap), expected));
    });
    on_ranks(1, [&](sim::Communicator& communicator) {
        Trainer trainer(communicator, small_model);
        {
            AdamW adamw(trainer.device(), communicator, {group_with(trainer, true, 0.5)});
            trainer.train(adamw, 7, 1);
            trainer.set_parameters(from_swap.parameters);
            adamw.load_state_dict(from_swap.optimizer);
            trainer.train(adamw, 3, 2);
            EXPECT_TRUE(same_value(everything(trainer, adamw), expected));
        }
        EXPECT_THAT(trainer.findings(), IsEmpty());
    });
}

/// One rank whose optimizer has a state of its own already, and another lr.
void with_target(bool amsgrad, const std::function<void(Trainer&, SwapAdamW&)>& test) {
    on_ranks(1, [&](sim::Communicator& communicator) {
        Trainer trainer(communicator, small_model);
        {
            SwapAdamW swap(trainer.device(), communicator, {group_with(trainer, amsgrad, 0.5)},
                           {4, 2});
            trainer.train(swap, 7, 2);
            test(trainer, swap);
        }
        EXPECT_THAT(trainer.findings(), IsEmpty());
    });
}

TEST(Load, DeviceMemoryGrowsByZeroAndNothingButHostWritesIsTraced) {
    const Saved saved = saved_after<SwapAdamW>(true, 3);
    with_target(true, [&](Trainer& trainer, SwapAdamW& swap) {
        const std::size_t before = trainer.device().trace().size();
        const sim::MemoryLedger::Window window(trainer.device().ledger());
        swap.load_state_dict(saved.optimizer);
        EXPECT_EQ(window.rise(MemoryKind::device), 0U);
        EXPECT_EQ(window.rise(MemoryKind::pinned), 0U);
        EXPECT_EQ(window.rise(MemoryKind::host),
                  10U * 4);  // a block as large as the largest moment
        EXPECT_EQ(window.kept(MemoryKind::host), 0);
        std::uint64_t written_bytes = 0;
        for (std::size_t i = before; i < trainer.device().trace().size(); ++i) {
            const sim::TraceEvent& event = trainer.device().trace()[i];
            EXPECT_EQ(event.operation, "host write");
            EXPECT_EQ(event.tag, "moments");
            written_bytes += event.bytes;
        }
        EXPECT_EQ(written_bytes, 3U * (10 + 3 + 1) * 4);
    });
}

Tensor tensor_of(const StateDict& dict, const std::string& fqn, const std::string& key) {
    return *dict.find(fqn)->find(key)->get_if<Tensor>();
}

std::vector<float> moment(const Optimizer& optimizer, const std::string& fqn,
                          const std::string& key) {
    return to_floats(tensor_of(optimizer.state_dict(), fqn, key));
}

TEST(Load, TwoOptimizersFromOneDictShareNothing) {
    const Saved saved = saved_after<SwapAdamW>(false, 3);
    const StateDict& dict = saved.optimizer;
    const std::vector<std::byte> bytes = tensor_of(dict, "a", "exp_avg").to_bytes();
    with_target(false, [&](Trainer& trainer, SwapAdamW& first) {
        SwapAdamW second(trainer.device(), trainer.communicator(), {group_with(trainer, false)});
        first.load_state_dict(dict);
        second.load_state_dict(dict);
        const Value before = to_value(second.state_dict());
        trainer.train(first, 3, 2);
        EXPECT_TRUE(same_value(to_value(second.state_dict()), before));
        EXPECT_EQ(moment(first, "a", "step"), std::vector<float>{5});
        EXPECT_EQ(tensor_of(dict, "a", "exp_avg").to_bytes(), bytes);
        EXPECT_EQ(to_floats(tensor_of(dict, "a", "step")), std::vector<float>{3});
    });
}

TEST(Load, LiveDictOfAnotherOptimizerIsCopiedToo) {
    with_target(true, [](Trainer& trainer, SwapAdamW& first) {
        SwapAdamW second(trainer.device(), trainer.communicator(), {group_with(trainer, true)});
        second.load_state_dict(first.state_dict(Snapshot::live));
        const Value before = to_value(second.state_dict());
        EXPECT_TRUE(same_value(before, to_value(first.state_dict())));
        trainer.train(first, 9, 1);
        EXPECT_TRUE(same_value(to_value(second.state_dict()), before));
    });
}

TEST(Load, OwnLiveDictChangesNothing) {
    with_target(true, [](Trainer& trainer, SwapAdamW& swap) {
        const Value before = everything(trainer, swap);
        swap.load_state_dict(swap.state_dict(Snapshot::live));
        EXPECT_TRUE(same_value(everything(trainer, swap), before));
    });
}

TEST(Load, BuffersStayTheSame) {
    const Saved saved = saved_after<SwapAdamW>(false, 3);
    with_target(false, [&](Trainer&, SwapAdamW& swap) {
        const StateDict live = swap.state_dict(Snapshot::live);
        swap.load_state_dict(saved.optimizer);
        const StateDict after = swap.state_dict(Snapshot::live);
        for (const char* key : {"step", "exp_avg", "exp_avg_sq"}) {
            EXPECT_EQ(tensor_of(live, "b", key).storage().data(),
                      tensor_of(after, "b", key).storage().data());
        }
        EXPECT_EQ(to_floats(tensor_of(live, "b", "step")), std::vector<float>{3});
        EXPECT_EQ(tensor_of(live, "b", "exp_avg").memory(), MemoryKind::pinned);
    });
}

TEST(Load, GroupEditsAfterwardsReachTheNextStep) {
    const Saved saved = saved_after<SwapAdamW>(false, 3);
    with_target(false, [&](Trainer& trainer, SwapAdamW& swap) {
        swap.load_state_dict(saved.optimizer);
        EXPECT_EQ(swap.param_groups()[0].options.lr, 0.01);
        swap.param_groups()[0].options.lr = 0.0;
        const Dict before = trainer.parameters();
        trainer.train(swap, 3, 1);
        EXPECT_TRUE(same_value(trainer.parameters(), before));
    });
}

TEST(Load, KeysOfTheUserComeFromTheFileAndOnesOnlyLiveVanish) {
    Saved saved = saved_after<SwapAdamW>(false, 1);
    Dict& group = saved.optimizer.param_groups[0];
    group.set("initial_lr", 0.25);
    group.set("fused", true);
    group.set("foreach", None{});
    group.set("ema", make_scalar(4.0F));
    with_target(false, [&](Trainer&, SwapAdamW& swap) {
        swap.param_groups()[0].extra.set("mine", 1.0);
        swap.load_state_dict(saved.optimizer);
        const Dict& extra = swap.param_groups()[0].extra;
        EXPECT_EQ(repr(extra), "{'fused': True, 'initial_lr': 0.25, 'ema': tensor float32 []}");
        EXPECT_NE(extra.find("ema")->get_if<Tensor>()->storage_ptr(),
                  group.find("ema")->get_if<Tensor>()->storage_ptr());
        EXPECT_TRUE(same_value(to_value(swap.state_dict()), to_value(saved.optimizer)));
    });
}

TEST(Load, NoneLeafIsAMissingKey) {
    Saved saved = saved_after<SwapAdamW>(false, 3);
    const Value plain = to_value(saved.optimizer);
    for (auto& [fqn, state] : saved.optimizer.state) {
        state.set("max_exp_avg_sq", None{});
    }
    with_target(false, [&](Trainer&, SwapAdamW& swap) {
        swap.load_state_dict(saved.optimizer);
        EXPECT_TRUE(same_value(to_value(swap.state_dict()), plain));
    });
}

TEST(Load, ParameterWithoutSavedStateStartsAtStepZero) {
    Saved saved = saved_after<SwapAdamW>(true, 3);
    std::erase_if(saved.optimizer.state, [](const auto& entry) { return entry.first == "b"; });
    for (const auto staging : {LoadOptions::Staging::none, LoadOptions::Staging::shadow}) {
        with_target(true, [&](Trainer& trainer, SwapAdamW& swap) {
            LoadOptions options;
            options.staging = staging;
            StateDictSource source(saved.optimizer);
            swap.load(source, options);
            EXPECT_EQ(moment(swap, "b", "step"), std::vector<float>{0});
            for (const char* key : {"exp_avg", "exp_avg_sq", "max_exp_avg_sq"}) {
                EXPECT_EQ(moment(swap, "b", key), std::vector<float>(3, 0.0F));
            }
            EXPECT_EQ(moment(swap, "a", "step"), std::vector<float>{3});
            AdamW plain(trainer.device(), trainer.communicator(), {group_with(trainer, true)});
            trainer.train(plain, 1, 1);
            plain.load_state_dict(saved.optimizer);
            EXPECT_EQ(plain.state_dict().find("b"), nullptr);
        });
    }
}

TEST(Load, StatesAndArgsCanBeLeftOut) {
    const Saved saved = saved_after<SwapAdamW>(false, 3);
    with_target(false, [&](Trainer&, SwapAdamW& swap) {
        const Value state = to_value(swap.state_dict());
        LoadOptions options;
        options.load_args = options.load_states = false;
        StateDictSource source(saved.optimizer);
        swap.load(source, options);
        EXPECT_TRUE(same_value(to_value(swap.state_dict()), state));
        options.load_args = true;
        swap.load(source, options);
        EXPECT_EQ(swap.param_groups()[0].options.lr, 0.01);
        EXPECT_EQ(moment(swap, "a", "step"), std::vector<float>{2});
        swap.param_groups()[0].options.lr = 0.75;
        options = {};
        options.load_args = false;
        swap.load(source, options);
        EXPECT_EQ(swap.param_groups()[0].options.lr, 0.75);
        EXPECT_EQ(moment(swap, "a", "step"), std::vector<float>{3});
    });
}

TEST(Load, WithoutStatesNoMomentIsLookedAt) {
    Saved saved = saved_after<SwapAdamW>(false, 3);
    saved.optimizer.find("a")->set("exp_avg", make_host_tensor({1, 2}, {2}));
    saved.optimizer.find("b")->set("step", "three");
    with_target(false, [&](Trainer&, SwapAdamW& swap) {
        LoadOptions options;
        options.load_states = false;
        StateDictSource source(saved.optimizer);
        swap.load(source, options);
        EXPECT_EQ(swap.param_groups()[0].options.lr, 0.01);
        EXPECT_EQ(moment(swap, "a", "step"), std::vector<float>{2});
    });
}

TEST(Load, StatesAloneNeedNoGroups) {
    Saved saved = saved_after<SwapAdamW>(false, 3);
    saved.optimizer.param_groups.clear();
    with_target(false, [&](Trainer&, SwapAdamW& swap) {
        LoadOptions options;
        options.load_args = false;
        StateDictSource source(saved.optimizer);
        swap.load(source, options);
        EXPECT_EQ(moment(swap, "a", "step"), std::vector<float>{3});
    });
}

TEST(Load, EveryKindOfStepIsUnderstood) {
    const double three = 3.0;
    auto doubles = make_host_storage(8);
    doubles->write(0, std::as_bytes(std::span(&three, 1)));
    const std::int64_t whole = 3;
    auto integers = make_host_storage(8);
    integers->write(0, std::as_bytes(std::span(&whole, 1)));
    const std::int32_t narrow = 3;
    auto narrows = make_host_storage(4);
    narrows->write(0, std::as_bytes(std::span(&narrow, 1)));
    const std::vector<Value> steps{3.0,
                                   std::int64_t{3},
                                   make_host_tensor({3.0F}, {1}),
                                   Tensor(DType::float64, {}, doubles),
                                   Tensor(DType::int64, {}, integers),
                                   Tensor(DType::int32, {}, narrows)};
    for (const Value& step : steps) {
        Saved saved = saved_after<SwapAdamW>(false, 1);
        saved.optimizer.find("a")->set("step", step);
        with_target(false, [&](Trainer&, SwapAdamW& swap) {
            swap.load_state_dict(saved.optimizer);
            EXPECT_EQ(moment(swap, "a", "step"), std::vector<float>{3}) << repr(step);
        });
    }
}

TEST(Load, TensorHyperParametersAreNumbers) {
    Saved saved = saved_after<SwapAdamW>(false, 1);
    saved.optimizer.param_groups[0].set("lr", make_scalar(0.5F));
    saved.optimizer.param_groups[0].set("betas", List{{std::int64_t{0}, make_scalar(0.25F)}});
    with_target(false, [&](Trainer&, SwapAdamW& swap) {
        swap.load_state_dict(saved.optimizer);
        EXPECT_EQ(swap.param_groups()[0].options.lr, 0.5);
        EXPECT_EQ(swap.param_groups()[0].options.beta1, 0.0);
        EXPECT_EQ(swap.param_groups()[0].options.beta2, 0.25);
    });
}

TEST(Load, ParametersAreMatchedByNameNotByPosition) {
    Saved saved = saved_after<SwapAdamW>(false, 3);
    const Value expected = to_value(saved.optimizer);
    std::reverse(saved.optimizer.state.begin(), saved.optimizer.state.end());
    auto& names = saved.optimizer.param_groups[0].find("params")->get_if<List>()->items;
    std::reverse(names.begin(), names.end());
    with_target(false, [&](Trainer&, SwapAdamW& swap) {
        swap.load_state_dict(saved.optimizer);
        EXPECT_TRUE(same_value(to_value(swap.state_dict()), expected));
    });
}

TEST(Load, WrittenThroughLiveDictsStepsStayWholeNumbers) {
    with_target(false, [](Trainer&, SwapAdamW& swap) {
        const Tensor step = tensor_of(swap.state_dict(Snapshot::live), "a", "step");
        step.storage().write(0, make_scalar(7.0F).to_bytes());
        EXPECT_EQ(moment(swap, "a", "step"), std::vector<float>{7});
        for (const float bad : {0.5F, -1.0F, 16777218.0F, std::nanf("")}) {
            EXPECT_THROW(step.storage().write(0, make_scalar(bad).to_bytes()), sim::ArgumentError);
        }
        EXPECT_EQ(moment(swap, "a", "step"), std::vector<float>{7});
    });
}

// --- several ranks ------------------------------------------------------------------------------

const std::vector<ParamSpec> sharded_model{{"w", {5, 2}, {Placement::shard(0)}},
                                           {"v", {2, 3}, {Placement::shard(1)}},
                                           {"r", {4}, {Placement::replicate()}}};

/// Moments of the whole tensors after `steps` steps on one rank, as plain tensors.
StateDict whole_state(std::int64_t steps) {
    StateDict whole;
    on_ranks(1, [&](sim::Communicator& communicator) {
        Trainer trainer(communicator, sharded_model);
        SwapAdamW swap(trainer.device(), communicator, {group_with(trainer, false)}, {3, 2});
        trainer.train(swap, 0, steps);
        whole = swap.state_dict();
        for (auto& [fqn, state] : whole.state) {
            for (auto& [key, value] : state.items) {
                value = value.get_if<Tensor>()->without_shard();
            }
        }
    });
    return whole;
}

TEST(ShardedLoad, WholeTensorsAreCutForEveryWorld) {
    const StateDict whole = whole_state(3);
    for (const int size : {1, 2, 3, 4, 7}) {
        on_ranks(size, [&](sim::Communicator& communicator) {
            Trainer trainer(communicator, sharded_model);
            SwapAdamW trained(trainer.device(), communicator, {group_with(trainer, false)}, {3, 2});
            trainer.train(trained, 0, 3);
            SwapAdamW loaded(trainer.device(), communicator, {group_with(trainer, false)}, {2, 1});
            loaded.load_state_dict(whole);
            EXPECT_TRUE(same_value(to_value(loaded.state_dict()), to_value(trained.state_dict())));
        });
    }
}

TEST(ShardedLoad, OwnShardsComeBackToTheirRank) {
    on_ranks(3, [&](sim::Communicator& communicator) {
        Trainer trainer(communicator, sharded_model);
        SwapAdamW first(trainer.device(), communicator, {group_with(trainer, false)}, {3, 2});
        trainer.train(first, 0, 2);
        SwapAdamW second(trainer.device(), communicator, {group_with(trainer, false)}, {8, 2});
        second.load_state_dict(first.state_dict());
        EXPECT_TRUE(same_value(to_value(first.state_dict()), to_value(second.state_dict())));
        EXPECT_EQ(tensor_of(second.state_dict(), "w", "exp_avg").shard(),
                  trainer.parameter("w")->data.shard());
    });
}

}  // namespace
}  // namespace swaplab::optim
