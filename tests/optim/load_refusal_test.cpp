#include "support/training.hpp"

#include "swaplab/optim/adamw.hpp"
#include "swaplab/optim/swap_adamw.hpp"

#include <algorithm>
#include <functional>
#include <limits>

namespace swaplab::optim {
namespace {

using support::everything;
using support::on_ranks;
using support::ParamSpec;
using support::Trainer;
using ::testing::Contains;
using ::testing::IsEmpty;

const std::vector<ParamSpec> model{{"a", {4, 2}, {}}, {"b", {3}, {}}, {"c", {2}, {}}};

std::vector<ParamGroup> two_groups(const Trainer& trainer, bool amsgrad) {
    AdamWOptions options;
    options.amsgrad = amsgrad;
    return {trainer.group(options, {"a", "b"}), trainer.group({}, {"c"})};
}

StateDict saved_dict(bool amsgrad) {
    StateDict saved;
    on_ranks(1, [&](sim::Communicator& communicator) {
        Trainer trainer(communicator, model);
        SwapAdamW swap(trainer.device(), communicator, two_groups(trainer, amsgrad));
        trainer.train(swap, 0, 2);
        saved = swap.state_dict();
    });
    return saved;
}

void erase(Dict& dict, const std::string& key) {
    std::erase_if(dict.items, [&](const auto& item) { return repr(item.first) == repr(key); });
}

/// One way to spoil a good dict, and what the refusal must name.
struct Spoiling {
    std::string name;
    std::function<void(StateDict&)> spoil;
    std::string parameter;
    std::string key;
    std::string expected;
    std::string found;
    bool amsgrad = false;
    bool load_args = true;
    bool load_states = true;

    friend void PrintTo(const Spoiling& spoiling, std::ostream* out) { *out << spoiling.name; }
};

void set(StateDict& dict, const char* fqn, const char* key, Value value) {
    dict.find(fqn)->set(key, std::move(value));
}

Tensor zeros(DType dtype, Shape shape) {
    const std::uint64_t bytes = static_cast<std::uint64_t>(numel(shape)) * sim::size_of(dtype);
    return {dtype, std::move(shape), make_host_storage(bytes)};
}

std::vector<Spoiling> state_spoilings() {
    return {
        {"moment_missing", [](StateDict& d) { erase(*d.find("a"), "exp_avg"); }, "a", "exp_avg",
         "float32 [4,2]", "missing"},
        {"moment_none", [](StateDict& d) { set(d, "b", "exp_avg_sq", None{}); }, "b", "exp_avg_sq",
         "float32 [3]", "missing"},
        {"step_missing", [](StateDict& d) { erase(*d.find("b"), "step"); }, "b", "step", "a step",
         "missing"},
        {"moment_of_another_shape",
         [](StateDict& d) {
             set(d, "a", "exp_avg", zeros(DType::float32, {2, 4}));
         },
         "a", "exp_avg", "[4,2]", "[2,4]"},
        {"moment_of_another_dtype",
         [](StateDict& d) {
             set(d, "a", "exp_avg", zeros(DType::bfloat16, {4, 2}));
         },
         "a", "exp_avg", "float32", "bfloat16"},
        {"moment_that_is_no_tensor", [](StateDict& d) { set(d, "a", "exp_avg", 1.0); }, "a",
         "exp_avg", "float32 [4,2]", "1.0"},
        {"step_negative", [](StateDict& d) { set(d, "a", "step", make_scalar(-1)); }, "a", "step",
         "a whole number from 0 to 16777216", "-1.0"},
        {"step_fractional", [](StateDict& d) { set(d, "a", "step", make_scalar(1.5F)); }, "a",
         "step", "a whole number from 0 to 16777216", "1.5"},
        {"step_too_large", [](StateDict& d) { set(d, "a", "step", make_scalar(16777218.0F)); }, "a",
         "step", "a whole number from 0 to 16777216", "16777218.0"},
        {"step_nan",
         [](StateDict& d) {
             set(d, "a", "step", make_scalar(std::numeric_limits<float>::quiet_NaN()));
         },
         "a", "step", "a whole number from 0 to 16777216", "nan"},
        {"step_of_two_elements",
         [](StateDict& d) { set(d, "a", "step", zeros(DType::float32, {2})); }, "a", "step",
         "a whole number from 0 to 16777216", "float32 [2]"},
        {"step_of_another_dtype",
         [](StateDict& d) { set(d, "a", "step", zeros(DType::bfloat16, {})); }, "a", "step",
         "a whole number from 0 to 16777216", "bfloat16 []"},
        {"step_text", [](StateDict& d) { set(d, "a", "step", "2"); }, "a", "step",
         "a whole number from 0 to 16777216", "'2'"},
        {"step_fractional_number", [](StateDict& d) { set(d, "a", "step", 0.5); }, "a", "step",
         "a whole number from 0 to 16777216", "0.5"},
        {"unknown_key", [](StateDict& d) { set(d, "a", "momentum", 1.0); }, "a", "momentum",
         "missing", "1.0"},
        {"maximum_without_amsgrad",
         [](StateDict& d) {
             set(d, "a", "max_exp_avg_sq", zeros(DType::float32, {4, 2}));
         },
         "a", "max_exp_avg_sq", "missing", "float32 [4,2]"},
        {"maximum_missing_with_amsgrad",
         [](StateDict& d) { erase(*d.find("a"), "max_exp_avg_sq"); }, "a", "max_exp_avg_sq",
         "float32 [4,2]", "missing", true},
        {"state_of_an_unknown_parameter",
         [](StateDict& d) { d.state.emplace_back("z", *d.find("a")); }, "z", "state", "missing",
         "present"},
    };
}

List names(std::vector<Value> items) {
    return {std::move(items)};
}

std::vector<Spoiling> group_spoilings() {
    return {
        {"group_missing", [](StateDict& d) { d.param_groups.pop_back(); }, "", "param_groups",
         "2 groups", "1 groups"},
        {"no_groups", [](StateDict& d) { d.param_groups.clear(); }, "", "param_groups", "2 groups",
         "0 groups"},
        {"parameter_missing", [](StateDict& d) { d.param_groups[0].set("params", names({"a"})); },
         "b", "param_groups", "group 0", "no group"},
        {"parameter_in_another_group",
         [](StateDict& d) {
             d.param_groups[0].set("params", names({"a"}));
             d.param_groups[1].set("params", names({"c", "b"}));
         },
         "b", "param_groups", "group 0", "group 1"},
        {"parameter_unknown",
         [](StateDict& d) {
             d.param_groups[1].set("params", names({"c", "z"}));
         },
         "z", "param_groups", "no group", "group 1"},
        {"parameter_twice",
         [](StateDict& d) {
             d.param_groups[1].set("params", names({"c", "a"}));
         },
         "a", "param_groups", "once", "twice"},
        {"parameter_missing_without_args",
         [](StateDict& d) { d.param_groups[0].set("params", names({"a"})); }, "b", "param_groups",
         "group 0", "no group", false, false},
        {"integer_ids",
         [](StateDict& d) { d.param_groups[0].set("params", names({std::int64_t{0}})); }, "",
         "param_groups.0.params", "parameter names", "0"},
        {"params_missing", [](StateDict& d) { erase(d.param_groups[1], "params"); }, "",
         "param_groups.1.params", "a list of parameter names", "missing"},
        {"lr_missing", [](StateDict& d) { erase(d.param_groups[1], "lr"); }, "",
         "param_groups.1.lr", "a number", "missing"},
        {"lr_text", [](StateDict& d) { d.param_groups[0].set("lr", "high"); }, "",
         "param_groups.0.lr", "a number", "'high'"},
        {"lr_negative", [](StateDict& d) { d.param_groups[0].set("lr", -1.0); }, "",
         "param_groups.0.(values)", "valid hyper-parameters", "-1.0"},
        {"betas_short", [](StateDict& d) { d.param_groups[0].set("betas", Tuple{{0.9}}); }, "",
         "param_groups.0.betas", "two numbers", "(0.9,)"},
        {"eps_missing_without_states", [](StateDict& d) { erase(d.param_groups[0], "eps"); }, "",
         "param_groups.0.eps", "a number", "missing", false, true, false},
        {"maximize_number", [](StateDict& d) { d.param_groups[0].set("maximize", 1.0); }, "",
         "param_groups.0.maximize", "True or False", "1.0"},
        {"amsgrad_switched_on", [](StateDict& d) { d.param_groups[1].set("amsgrad", true); }, "",
         "param_groups.1.amsgrad", "False", "True"},
        {"amsgrad_missing_means_off", [](StateDict& d) { erase(d.param_groups[0], "amsgrad"); }, "",
         "param_groups.0.amsgrad", "True", "False", true},
        {"foreign_object",
         [](StateDict& d) {
             d.param_groups[0].set("x", List{{Tuple{{Opaque{"decimal.Decimal", 3}}}}});
         },
         "", "param_groups.0.x", "plain values", "[(object decimal.Decimal,)]"},
    };
}

std::vector<Spoiling> all_spoilings() {
    std::vector<Spoiling> all = state_spoilings();
    const std::vector<Spoiling> groups = group_spoilings();
    all.insert(all.end(), groups.begin(), groups.end());
    return all;
}

std::vector<Mismatch> refusal_of(Optimizer& optimizer, const StateDict& saved,
                                 const Spoiling& spoiling) {
    LoadOptions options;
    options.load_args = spoiling.load_args;
    options.load_states = spoiling.load_states;
    StateDictSource source(saved);
    try {
        optimizer.load(source, options);
    } catch (const CheckpointRejected& error) {
        return error.mismatches();
    }
    return {};
}

class Refusal : public ::testing::TestWithParam<Spoiling> {};

template <class Optim>
void expect_refusal(const Spoiling& spoiling) {
    StateDict saved = saved_dict(spoiling.amsgrad);
    spoiling.spoil(saved);
    on_ranks(1, [&](sim::Communicator& communicator) {
        Trainer trainer(communicator, model);
        {
            Optim optimizer(trainer.device(), communicator, two_groups(trainer, spoiling.amsgrad));
            trainer.train(optimizer, 7, 1);
            const Value before = everything(trainer, optimizer);
            const std::vector<Mismatch> found = refusal_of(optimizer, saved, spoiling);
            const bool named = std::any_of(found.begin(), found.end(), [&](const Mismatch& m) {
                return m.parameter == spoiling.parameter && m.key == spoiling.key &&
                       m.expected == spoiling.expected && m.found == spoiling.found;
            });
            EXPECT_TRUE(named) << CheckpointRejected("load", "state dict", 1, found).what();
            EXPECT_TRUE(same_value(everything(trainer, optimizer), before));
            EXPECT_FALSE(optimizer.torn());
        }
        EXPECT_THAT(trainer.findings(), IsEmpty());
    });
}

TEST_P(Refusal, NamesItAndChangesNothing) {
    expect_refusal<SwapAdamW>(GetParam());
    expect_refusal<AdamW>(GetParam());
}

INSTANTIATE_TEST_SUITE_P(Load, Refusal, ::testing::ValuesIn(all_spoilings()),
                         [](const ::testing::TestParamInfo<Spoiling>& spoiling) {
                             return spoiling.param.name;
                         });

TEST(Refusals, NameEveryMismatchAtOnce) {
    StateDict saved = saved_dict(false);
    erase(*saved.find("a"), "exp_avg");
    erase(*saved.find("b"), "step");
    saved.param_groups[1].set("lr", "x");
    on_ranks(1, [&](sim::Communicator& communicator) {
        Trainer trainer(communicator, model);
        SwapAdamW swap(trainer.device(), communicator, two_groups(trainer, false));
        EXPECT_EQ(refusal_of(swap, saved, {}).size(), 3U);
    });
}

TEST(Refusals, CheckAloneReportsWhatLoadWouldRefuse) {
    StateDict saved = saved_dict(false);
    erase(*saved.find("a"), "exp_avg");
    on_ranks(1, [&](sim::Communicator& communicator) {
        Trainer trainer(communicator, model);
        const SwapAdamW swap(trainer.device(), communicator, two_groups(trainer, false));
        const std::vector<Mismatch> found = swap.check(StateDictSource(saved), {});
        EXPECT_EQ(found, (std::vector<Mismatch>{{0,
                                                 "a",
                                                 "exp_avg",
                                                 "float32 [4,2]",
                                                 "missing",
                                                 "half of a state is no state",
                                                 {}}}));
    });
}

// --- several ranks ------------------------------------------------------------------------------

const std::vector<ParamSpec> sharded{{"w", {6, 2}, {Placement::shard(0)}}};

/// Two trained ranks load their own dicts, spoiled on rank 1 only. Every rank must refuse alike.
std::vector<Mismatch> refusal_with_one_bad_rank(const std::function<void(StateDict&)>& spoil,
                                                int size = 2) {
    std::vector<std::vector<Mismatch>> found(static_cast<std::size_t>(size));
    on_ranks(size, [&](sim::Communicator& communicator) {
        Trainer trainer(communicator, sharded);
        SwapAdamW swap(trainer.device(), communicator, {trainer.group()}, {4, 2});
        trainer.train(swap, 0, 1);
        StateDict saved = swap.state_dict();
        trainer.train(swap, 1, 1);
        const Value before = everything(trainer, swap);
        if (communicator.rank() == 1) {
            spoil(saved);
        }
        found[static_cast<std::size_t>(communicator.rank())] = refusal_of(swap, saved, {});
        EXPECT_TRUE(same_value(everything(trainer, swap), before));
        EXPECT_FALSE(swap.torn());
    });
    for (const auto& of_rank : found) {
        EXPECT_EQ(of_rank, found[0]);
    }
    return found[0];
}

TEST(ShardedRefusal, OneBadRankMakesAllRanksRefuse) {
    const std::vector<Mismatch> found =
        refusal_with_one_bad_rank([](StateDict& saved) { erase(*saved.find("w"), "exp_avg"); }, 3);
    ASSERT_EQ(found.size(), 1U);
    EXPECT_EQ(found[0].rank, 1);
}

TEST(ShardedRefusal, BadStepOnOneRankMakesAllRanksRefuse) {
    const std::vector<Mismatch> found = refusal_with_one_bad_rank(
        [](StateDict& saved) { saved.find("w")->set("step", make_scalar(-3)); });
    ASSERT_EQ(found.size(), 1U);
    EXPECT_EQ(found[0].rank, 1);
    EXPECT_EQ(found[0].found, "-3.0");
}

TEST(ShardedRefusal, RanksMustAgreeOnTheStep) {
    const std::vector<Mismatch> found = refusal_with_one_bad_rank(
        [](StateDict& saved) { saved.find("w")->set("step", make_scalar(5)); });
    ASSERT_EQ(found.size(), 1U);
    EXPECT_EQ(found[0].rank, 1);
    EXPECT_EQ(found[0].parameter, "w");
    EXPECT_EQ(found[0].expected, "1");
    EXPECT_EQ(found[0].found, "5");
}

TEST(ShardedRefusal, RanksMustAgreeOnWhetherThereIsState) {
    const std::vector<Mismatch> found =
        refusal_with_one_bad_rank([](StateDict& saved) { saved.state.clear(); });
    ASSERT_EQ(found.size(), 1U);
    EXPECT_EQ(found[0].found, "no state");
}

TEST(ShardedRefusal, MomentWithoutShardMetadata) {
    const std::vector<Mismatch> found = refusal_with_one_bad_rank([](StateDict& saved) {
        Value* moment = saved.find("w")->find("exp_avg_sq");
        *moment = moment->get_if<Tensor>()->without_shard();
    });
    ASSERT_EQ(found.size(), 1U);
    EXPECT_EQ(found[0].key, "exp_avg_sq");
    EXPECT_EQ(found[0].expected, "[6,2]");
    EXPECT_EQ(found[0].found, "[3,2]");
    EXPECT_THAT(found[0].detail, ::testing::HasSubstr("no complete shard metadata"));
}

TEST(ShardedRefusal, ShardOfAnotherPlacement) {
    const std::vector<Mismatch> found = refusal_with_one_bad_rank([](StateDict& saved) {
        const ShardSpec columns{{6, 2}, {2}, {Placement::shard(1)}, {}};
        saved.find("w")->set("exp_avg", make_host_tensor(std::vector<float>(6), {6, 1}, columns));
    });
    ASSERT_EQ(found.size(), 1U);
    EXPECT_EQ(found[0].expected, "[3:6, 0:2]");
    EXPECT_EQ(found[0].found, "[0:6, 1:2]");
}

TEST(ShardedRefusal, ShardOfAnotherGlobalShape) {
    const std::vector<Mismatch> found = refusal_with_one_bad_rank([](StateDict& saved) {
        const ShardSpec shrunken{{5, 2}, {2}, {Placement::shard(0)}, {}};
        saved.find("w")->set("exp_avg", make_host_tensor(std::vector<float>(4), {2, 2}, shrunken));
    });
    ASSERT_EQ(found.size(), 1U);
    EXPECT_EQ(found[0].expected, "[6,2]");
    EXPECT_EQ(found[0].found, "[5,2]");
}

}  // namespace
}  // namespace swaplab::optim
