#include "swaplab/optim/state_dict.hpp"

#include <array>

namespace swaplab::optim {
namespace {

using ::testing::ElementsAre;

const ShardSpec halves{{4, 2}, {2}, {Placement::shard(0)}, {}};
const ShardSpec columns{{4, 2}, {2}, {Placement::shard(1)}, {}};

StateDict dict_with(Value exp_avg) {
    Dict state;
    state.set("exp_avg", std::move(exp_avg));
    return {{{"a", state}}, {}};
}

Tensor live_part(const ShardSpec& spec, int rank) {
    const Shape shape = spec.box_of(rank)->sizes;
    return make_host_tensor(std::vector<float>(static_cast<std::size_t>(numel(shape))), shape,
                            spec);
}

std::vector<Mismatch> check(const StateDict& dict, const Tensor& live, int rank) {
    return StateDictSource(dict).check("a", "exp_avg", live, rank);
}

std::vector<float> read(const StateDict& dict, const Tensor& live, int rank, std::size_t first,
                        std::size_t count) {
    StateDictSource source(dict);
    std::vector<float> out(count);
    source.read("a", "exp_avg", live, rank, first * sizeof(float),
                std::as_writable_bytes(std::span(out)));
    return out;
}

TEST(StateDicts, ValueAndBack) {
    StateDict dict = dict_with(make_host_tensor({1}, {1}));
    Dict group;
    group.set("lr", 0.5);
    dict.param_groups.push_back(group);
    const Value value = to_value(dict);
    EXPECT_EQ(repr(value),
              "{'state': {'a': {'exp_avg': tensor float32 [1]}}, 'param_groups': [{'lr': 0.5}]}");
    EXPECT_TRUE(same_value(to_value(state_dict_from_value(value)), value));
}

TEST(StateDicts, WrongKindsAreRefusedNamingTheKey) {
    Dict root;
    root.set("state", Dict{});
    const auto text = [](const Value& value) -> std::string {
        try {
            static_cast<void>(state_dict_from_value(value));
        } catch (const sim::ArgumentError& error) {
            return error.what();
        }
        return "accepted";
    };
    EXPECT_EQ(text(1.0), "state dict key (root) must be a dict, found float");
    EXPECT_EQ(text(root), "state dict key param_groups must be a list, found nothing");
    root.set("param_groups", List{{1.0}});
    EXPECT_EQ(text(root), "state dict key param_groups.0 must be a dict, found float");
    Dict state;
    state.set("a", "x");
    root.set("state", state);
    EXPECT_EQ(text(root), "state dict key state.a must be a dict, found str");
    state.items = {{std::int64_t{0}, Dict{}}};
    root.set("state", state);
    EXPECT_EQ(text(root),
              "state dict key state.0 must be a dict with parameter names as keys, found int");
}

TEST(StateDictSource, OwnShardIsReadAsItIs) {
    const StateDict dict = dict_with(make_host_tensor({1, 2, 3, 4}, {2, 2}, halves));
    const Tensor live = live_part(halves, 1);
    EXPECT_THAT(check(dict, live, 1), ElementsAre());
    EXPECT_THAT(read(dict, live, 1, 1, 2), ElementsAre(2, 3));
}

TEST(StateDictSource, AnyPartIsCutOutOfAWholeTensor) {
    const StateDict dict = dict_with(make_host_tensor({1, 2, 3, 4, 5, 6, 7, 8}, {4, 2}));
    EXPECT_THAT(check(dict, live_part(columns, 1), 1), ElementsAre());
    EXPECT_THAT(read(dict, live_part(columns, 1), 1, 0, 4), ElementsAre(2, 4, 6, 8));
    EXPECT_THAT(read(dict, live_part(columns, 1), 1, 1, 2), ElementsAre(4, 6));
    EXPECT_THAT(read(dict, live_part(halves, 1), 1, 0, 4), ElementsAre(5, 6, 7, 8));
    EXPECT_THAT(read(dict, live_part(halves, 1), 1, 3, 1), ElementsAre(8));
}

TEST(StateDictSource, PlainLocalPartWithoutShardMetadataIsRefused) {
    const StateDict dict = dict_with(make_host_tensor({1, 2, 3, 4}, {2, 2}));
    EXPECT_THAT(check(dict, live_part(halves, 1), 1),
                ElementsAre(Mismatch{1,
                                     "a",
                                     "exp_avg",
                                     "[4,2]",
                                     "[2,2]",
                                     "no complete shard metadata: a plain tensor of another shape "
                                     "than the global one",
                                     {}}));
}

TEST(StateDictSource, ShardOfAnotherPlacementIsRefusedWithBothBoxes) {
    const StateDict dict = dict_with(make_host_tensor({1, 2, 3, 4}, {4, 1}, columns));
    const std::vector<Mismatch> found = check(dict, live_part(halves, 0), 0);
    ASSERT_EQ(found.size(), 1U);
    EXPECT_EQ(found[0].expected, "[0:2, 0:2]");
    EXPECT_EQ(found[0].found, "[0:4, 0:1]");
}

TEST(StateDictSource, TensorThatIsNotThePartItNamesIsRefused) {
    const StateDict dict = dict_with(make_host_tensor({1, 2}, {1, 2}, halves));
    const std::vector<Mismatch> found = check(dict, live_part(halves, 0), 0);
    ASSERT_EQ(found.size(), 1U);
    EXPECT_EQ(found[0].expected, "[2,2]");
    EXPECT_EQ(found[0].found, "[1,2]");
}

TEST(StateDictSource, EntriesSayWhatIsThere) {
    StateDict dict = dict_with(live_part(halves, 0));
    dict.find("a")->set("max_exp_avg_sq", None{});
    const StateDictSource source(dict);
    const std::vector<SourceEntry> entries = source.entries("a");
    ASSERT_EQ(entries.size(), 2U);
    EXPECT_TRUE(entries[0].is_tensor);
    EXPECT_TRUE(entries[0].has_shard_metadata);
    EXPECT_EQ(entries[0].global_shape, (Shape{4, 2}));
    EXPECT_FALSE(entries[1].is_tensor);
    EXPECT_TRUE(entries[1].value.is_none());
    EXPECT_TRUE(source.entries("b").empty());
    EXPECT_THAT(source.fqns(), ElementsAre("a"));
}

TEST(CheckpointRejected, SaysEveryFactOnceAndCarriesItAsFields) {
    const Mismatch rank0{0,        "a",     "optimizer.state.a.exp_avg",
                         "[12,2]", "[6,2]", "shard of rank 0 lost: 12 of 24 elements (50.0 %)",
                         {0}};
    Mismatch rank1 = rank0;
    rank1.rank = 1;
    const CheckpointRejected error("SwapAdamW::load", "v0_w2_even", 2, {rank0, rank1});
    EXPECT_STREQ(
        error.what(),
        "v0_w2_even refused on 2 of 2 ranks; parameters, moments and steps are unchanged"
        "\n  optimizer.state.a.exp_avg   parameter a   saved [6,2]   live [12,2]   shard of "
        "rank 0 lost: 12 of 24 elements (50.0 %)"
        "\n  do  load with load_states = false, or load an older checkpoint; swaplab "
        "inspect shows what is left");
    const sim::ErrorFields expected{{"operation", "SwapAdamW::load"},
                                    {"subject", "v0_w2_even"},
                                    {"rank", "rank 0"},
                                    {"parameter", "a"},
                                    {"key", rank0.key},
                                    {"expected", "[12,2]"},
                                    {"found", "[6,2]"},
                                    {"lost_rank", "rank 0"},
                                    {"rank", "rank 1"}};
    EXPECT_EQ(error.fields(), expected);
    EXPECT_EQ(error.kind(), sim::ErrorKind::rejected);
}

TEST(CheckpointRejected, LongListsAreCut) {
    std::vector<Mismatch> many;
    for (int i = 0; i < 10; ++i) {
        many.push_back({0, "p" + std::to_string(i), "step", "", "missing", "", {}});
    }
    EXPECT_THAT(CheckpointRejected("load", "state dict", 1, many).what(),
                ::testing::HasSubstr("\n  ... 2 more"));
}

TEST(CheckpointRejected, GivesTheAdviceOfItsCallerInsteadOfThatForLoads) {
    const CheckpointRejected error("save", "ckpt", 1, {Mismatch{}}, "give it a shard");
    EXPECT_THAT(error.what(), ::testing::EndsWith("\n  do  give it a shard"));
}

}  // namespace
}  // namespace swaplab::optim
