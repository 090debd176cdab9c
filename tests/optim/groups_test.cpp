#include "support/training.hpp"
#include "swap/bucket_plan.hpp"

#include "swaplab/optim/adamw.hpp"
#include "swaplab/optim/swap_adamw.hpp"
#include "swaplab/sim/error.hpp"

namespace swaplab::optim {
namespace {

using support::everything;
using support::on_ranks;
using support::Trainer;
using ::testing::HasSubstr;

void on_one_rank(const std::function<void(Trainer&)>& test) {
    on_ranks(1, [&](sim::Communicator& communicator) {
        Trainer trainer(communicator, {{"a", {5}, {}}, {"b", {3}, {}}, {"c", {2}, {}}});
        test(trainer);
    });
}

std::string refusal(Trainer& trainer, std::vector<ParamGroup> groups,
                    const SwapAdamWOptions& options = {}) {
    try {
        const SwapAdamW swap(trainer.device(), trainer.communicator(), std::move(groups), options);
    } catch (const sim::ArgumentError& error) {
        return error.what();
    }
    return "accepted";
}

TEST(Construction, RefusesWithPyTorchsTexts) {
    on_one_rank([](Trainer& trainer) {
        EXPECT_EQ(refusal(trainer, {}), "optimizer got an empty parameter list");
        EXPECT_THAT(refusal(trainer, {trainer.group({}, {"a"}), trainer.group({}, {"b", "a"})}),
                    HasSubstr("some parameters appear in more than one parameter group"));
        EXPECT_EQ(refusal(trainer, {trainer.group({}, {"a", "a"})}),
                  "parameter a appears twice in one parameter group");
        AdamWOptions options;
        options.lr = -1;
        EXPECT_EQ(refusal(trainer, {trainer.group(options)}), "Invalid learning rate: -1.0");
        EXPECT_EQ(refusal(trainer, {ParamGroup{}}), "accepted");
    });
}

TEST(Construction, RefusesBucketsAndSlotsThatAreNotPositive) {
    on_one_rank([](Trainer& trainer) {
        EXPECT_EQ(refusal(trainer, {trainer.group()}, {0, 3}),
                  "bucket_elements and slots must be positive, found 0 and 3");
        EXPECT_EQ(refusal(trainer, {trainer.group()}, {4, 0}),
                  "bucket_elements and slots must be positive, found 4 and 0");
    });
}

TEST(Construction, RefusesTensorsThatAreNotOnTheDeviceOrNotThisRanksPart) {
    on_one_rank([](Trainer& trainer) {
        const Parameter good = *trainer.parameter("a");
        Parameter& a = *trainer.parameter("a");
        a.data = make_host_tensor({1, 2, 3, 4, 5}, {5});
        EXPECT_EQ(refusal(trainer, {trainer.group()}),
                  "parameter a and its gradient must be float32 device tensors");
        a = good;
        a.grad = trainer.parameter("b")->grad;
        EXPECT_THAT(refusal(trainer, {trainer.group()}), HasSubstr("of shape [5]"));
        a = good;
        a.data = Tensor(DType::float32, {5}, good.data.storage_ptr(),
                        ShardSpec{{10}, {4}, {Placement::shard(0)}, {}});
        EXPECT_EQ(refusal(trainer, {trainer.group()}),
                  "parameter a has local shape [5], but its shard metadata gives rank 0 [3]");
        a = good;
    });
}

TEST(AddedGroups, AreSteppedSavedAndEqualToPlainAdamW) {
    on_one_rank([](Trainer& trainer) {
        const Dict start = trainer.parameters();
        const auto run = [&](Optimizer& optimizer) {
            trainer.set_parameters(start);
            trainer.train(optimizer, 0, 2);
            AdamWOptions options;
            options.amsgrad = true;
            optimizer.add_param_group(trainer.group(options, {"b"}));
            trainer.train(optimizer, 2, 2);
            optimizer.add_param_group(trainer.group({}, {"c"}));
            trainer.train(optimizer, 4, 1);
            return everything(trainer, optimizer);
        };
        AdamW plain(trainer.device(), trainer.communicator(), {trainer.group({}, {"a"})});
        const Value expected = run(plain);
        for (const std::int64_t bucket_elements : {2, 64}) {
            SwapAdamW swap(trainer.device(), trainer.communicator(), {trainer.group({}, {"a"})},
                           {bucket_elements, 2, true});
            EXPECT_TRUE(same_value(run(swap), expected));
            const StateDict saved = swap.state_dict();
            EXPECT_EQ(to_floats(*saved.find("b")->find("step")->get_if<Tensor>())[0], 3.0F);
            EXPECT_EQ(saved.param_groups.size(), 3U);
            EXPECT_THROW(swap.add_param_group(trainer.group({}, {"b"})), sim::ArgumentError);
            EXPECT_EQ(swap.param_groups().size(), 3U);
        }
    });
}

TEST(AddedGroups, LiveTensorsOfBeforeStayValid) {
    on_one_rank([](Trainer& trainer) {
        SwapAdamW swap(trainer.device(), trainer.communicator(), {trainer.group({}, {"a"})});
        const StateDict live = swap.state_dict(Snapshot::live);
        swap.add_param_group(trainer.group({}, {"b", "c"}));
        trainer.train(swap, 0, 3);
        const auto& a = *live.find("a");
        EXPECT_EQ(to_floats(*a.find("step")->get_if<Tensor>())[0], 3.0F);
        EXPECT_EQ(a.find("exp_avg")->get_if<Tensor>()->to_bytes(),
                  swap.state_dict().find("a")->find("exp_avg")->get_if<Tensor>()->to_bytes());
    });
}

TEST(LiveGroups, EditsThatAStepCannotFollowAreRefused) {
    on_one_rank([](Trainer& trainer) {
        SwapAdamW swap(trainer.device(), trainer.communicator(), {trainer.group({}, {"a", "b"})});
        trainer.set_gradients(0);
        auto& group = swap.param_groups()[0];
        group.options.amsgrad = true;
        EXPECT_THROW(swap.step(), sim::ArgumentError);
        group.options.amsgrad = false;
        group.params.push_back(trainer.parameter("c"));
        EXPECT_THROW(swap.step(), sim::ArgumentError);
        group.params.pop_back();
        std::swap(group.params[0], group.params[1]);
        EXPECT_THROW(swap.step(), sim::ArgumentError);
        std::swap(group.params[0], group.params[1]);
        group.params.pop_back();
        EXPECT_THROW(swap.step(), sim::ArgumentError);
        group.params.push_back(trainer.parameter("b"));
        swap.step();
    });
}

// --- the cut into buckets -----------------------------------------------------------------------

std::vector<std::int64_t> sizes_of(const BucketPlan& plan) {
    std::vector<std::int64_t> sizes;
    for (const Bucket& bucket : plan.buckets) {
        sizes.push_back(bucket.elements * (bucket.kinds == 3 ? -1 : 1));
    }
    return sizes;
}

TEST(BucketPlans, SplitParametersAndEndWhereAmsgradChanges) {
    BucketPlan plan;
    // Negative sizes: three kinds. An empty parameter ends nothing.
    const std::uint64_t bytes =
        plan.append({{5, false}, {0, true}, {4, false}, {3, true}, {6, true}, {1, false}}, 0, 4);
    EXPECT_THAT(sizes_of(plan), ::testing::ElementsAre(4, 4, 1, -4, -4, -1, 1));
    EXPECT_EQ(plan.segments_of[0].size(), 2U);
    EXPECT_EQ(plan.segments_of[1].size(), 0U);
    EXPECT_EQ(plan.segments_of[2].size(), 2U);
    EXPECT_EQ(plan.largest_bucket_bytes(), 4U * 3 * 4);
    EXPECT_EQ(bytes, 6U * 4096 + 1 * 2 * 4);
    for (const Bucket& bucket : plan.buckets) {
        EXPECT_EQ(bucket.arena_offset_bytes % 4096, 0U);
    }
}

TEST(BucketPlans, EveryElementIsInExactlyOneSegmentInOrder) {
    for (const std::int64_t bucket_elements : {1, 2, 3, 7, 100}) {
        BucketPlan plan;
        const std::vector<FlatParameter> parameters{{5, false}, {1, false}, {0, false},
                                                    {9, true},  {2, false}, {13, true}};
        plan.append(parameters, 0, bucket_elements);
        plan.append({{4, true}}, 1, bucket_elements);
        ASSERT_EQ(plan.segments_of.size(), parameters.size() + 1);
        for (ParamId id = 0; id < parameters.size(); ++id) {
            std::int64_t next = 0;
            for (const SegmentRef& ref : plan.segments_of[id]) {
                const BucketSegment& part = plan.buckets[ref.bucket].segments[ref.segment];
                EXPECT_EQ(part.parameter, id);
                EXPECT_EQ(part.parameter_offset_elements, next);
                EXPECT_EQ(plan.buckets[ref.bucket].kinds, parameters[id].amsgrad ? 3 : 2);
                next += part.count_elements;
            }
            EXPECT_EQ(next, parameters[id].elements);
        }
        EXPECT_EQ(plan.buckets.back().arena, 1U);
    }
}

}  // namespace
}  // namespace swaplab::optim
