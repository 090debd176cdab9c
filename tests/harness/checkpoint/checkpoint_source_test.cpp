/// What a load finds in a checkpoint before it reads, and what it reads.

#include "support/copy_tree.hpp"
#include "support/expected_value.hpp"

#include "swaplab/harness/tensor_reader.hpp"

#include <gtest/gtest.h>

#include <fstream>

namespace swaplab::tests {
namespace {

using harness::Checkpoint;
using harness::Checks;
using harness::Shape;
using optim::Mismatch;

const std::string data = SWAPLAB_TEST_DATA;
constexpr const char* moments[] = {"exp_avg", "exp_avg_sq", "max_exp_avg_sq"};

std::string swap_path(const std::string& name) {
    return data + "/swap_adamw/checkpoints/" + name;
}
std::string dcp_path(const std::string& name) {
    return data + "/dcp/checkpoints/" + name + "/ckpt";
}

Json expectation(const std::string& name) {
    std::ifstream stream(swap_path(name) + ".expected.json");
    return Json::parse(stream);
}

/// `rank`'s live moment of a parameter that is sharded by rows over `world` ranks.
optim::Tensor live_moment(const Shape& shape, int world, int rank) {
    const optim::ShardSpec spec{shape, {world}, {optim::Placement::shard(0)}, {}};
    const Shape local = spec.box_of(rank).value().sizes;
    const auto elements = static_cast<std::size_t>(optim::numel(local));
    return optim::make_host_tensor(std::vector<float>(elements, -1.0F), local, spec);
}

std::string bits_of(const std::vector<std::byte>& bytes) {
    std::string text;
    const char* digits = "0123456789abcdef";
    for (std::size_t i = 0; i < bytes.size(); i += 4) {
        for (std::size_t b = 4; b-- > 0;) {
            text += digits[std::to_integer<unsigned>(bytes[i + b]) >> 4U];
            text += digits[std::to_integer<unsigned>(bytes[i + b]) & 0xfU];
        }
    }
    return text;
}

TEST(CheckpointSource, CompleteCheckpointsPassAndGiveEachRankItsMoments) {
    const auto storage = harness::make_posix_storage();
    for (const char* name : {"v2_w2_even", "v2_w2_uneven_amsgrad", "v2_w3_empty", "v2_w4_uneven",
                             "adamw_w2_uneven", "v2_w2_uneven_amsgrad_2groups"}) {
        const Json expected = expectation(name);
        Checkpoint checkpoint(*storage, swap_path(name));
        const auto source = make_checkpoint_source(checkpoint, "optimizer", Checks::full);
        EXPECT_EQ(source->fqns().size(), expected.at("shapes").size());
        EXPECT_EQ(source->param_groups().size(), expected.at("groups").size());
        const int world = expected.at("world");
        for (int rank = 0; rank < world; ++rank) {
            const Json& truth = expected.at("ranks").at(static_cast<std::size_t>(rank));
            for (const auto& shape : expected.at("shapes").items()) {
                for (const char* key : moments) {
                    const Json& bits = truth.at("moments_at_N").at(shape.key()).at(key);
                    if (bits.is_null()) {
                        continue;
                    }
                    const auto live = live_moment(shape.value(), world, rank);
                    EXPECT_THAT(source->check(shape.key(), key, live, rank), testing::IsEmpty());
                    std::vector<std::byte> bytes(live.local_bytes());
                    source->read(shape.key(), key, live, rank, 0, bytes);
                    EXPECT_EQ(bits_of(bytes), bits.get<std::string>())
                        << name << " " << shape.key() << " " << key << " rank " << rank;
                }
            }
        }
    }
}

TEST(CheckpointSource, LostShardsAreNamedAsTheOracleKnowsThem) {
    const auto storage = harness::make_posix_storage();
    std::size_t keys = 0;
    for (const char* name :
         {"v0_w2_even", "v0_w2_even_amsgrad", "v0_w2_uneven", "v0_w2_uneven_amsgrad",
          "v0_w2_uneven_amsgrad_2groups", "v0_w2_uneven_async", "v0_w3_empty", "v0_w3_even",
          "v0_w3_even_amsgrad", "v0_w3_uneven", "v0_w3_uneven_amsgrad", "v0_w4_uneven",
          "v0_w2_even_optonly"}) {
        const Json expected = expectation(name);
        Checkpoint checkpoint(*storage, swap_path(name));
        const auto source = make_checkpoint_source(checkpoint, "optimizer", Checks::full);
        for (const auto& lost : expected.at("lost").items()) {
            const std::size_t dot = lost.key().rfind('.');
            const std::string fqn = lost.key().substr(0, dot);
            const auto live = live_moment(expected.at("shapes").at(fqn), expected.at("world"), 0);
            const auto found = source->check(fqn, lost.key().substr(dot + 1), live, 0);
            std::vector<int> ranks;
            for (const Json& shard : lost.value()) {
                ranks.push_back(shard.at("rank"));
            }
            ASSERT_EQ(found.size(), 1U) << name << " " << lost.key();
            EXPECT_EQ(found[0].lost_ranks, ranks) << name << " " << lost.key();
            ++keys;
        }
    }
    EXPECT_EQ(keys, 87U + 6U);
}

TEST(CheckpointSource, ALostShardIsToldWithShapesAndShare) {
    const auto storage = harness::make_posix_storage();
    Checkpoint checkpoint(*storage, swap_path("v0_w2_even"));
    const auto source = make_checkpoint_source(checkpoint, "optimizer", Checks::full);
    const auto found = source->check("a", "exp_avg", live_moment({12, 2}, 2, 1), 1);
    const Mismatch expected{1,        "a",     "optimizer.state.a.exp_avg",
                            "[12,2]", "[6,2]", "shard of rank 0 lost: 12 of 24 elements (50.0 %)",
                            {0}};
    EXPECT_THAT(found, testing::ElementsAre(expected));
    // From another world than the one that saved: the checkpoint itself knows who held what.
    EXPECT_EQ(source->check("a", "exp_avg", live_moment({12, 2}, 3, 1), 1).at(0).lost_ranks,
              std::vector<int>{0});
}

TEST(CheckpointSource, AReaderWithoutSizeCheckLeavesTheRestOfTheMomentAsItWas) {
    const auto storage = harness::make_posix_storage();
    Checkpoint checkpoint(*storage, swap_path("v0_w2_uneven"));
    const auto source = make_checkpoint_source(checkpoint, "optimizer", Checks::none);
    std::vector<std::size_t> never_written;
    for (const int rank : {0, 1}) {
        std::size_t left = 0;
        for (const auto& [fqn, shape] :
             std::map<std::string, Shape>{{"a", {5, 3}}, {"b", {5, 3}}, {"c", {7}}}) {
            for (const char* key : {"exp_avg", "exp_avg_sq"}) {
                const auto live = live_moment(shape, 2, rank);
                EXPECT_THAT(source->check(fqn, key, live, rank), testing::IsEmpty());
                std::vector<std::byte> bytes = live.to_bytes();
                source->read(fqn, key, live, rank, 0, bytes);
                live.storage().write(0, bytes);
                const auto values = optim::to_floats(live);
                left += static_cast<std::size_t>(std::count(values.begin(), values.end(), -1.0F));
            }
        }
        never_written.push_back(left);
    }
    EXPECT_EQ(never_written, (std::vector<std::size_t>{14, 30}));
}

TEST(CheckpointSource, PytorchsChecksSeeKeysAndShapesOnly) {
    const auto memory = copy_to_memory(swap_path("v2_w2_even"), "c");
    memory->file_bytes("c/__1_0.distcp").resize(10);
    Checkpoint checkpoint(*memory, "c");
    const auto torch = make_checkpoint_source(checkpoint, "optimizer", Checks::torch);
    const auto full = make_checkpoint_source(checkpoint, "optimizer", Checks::full);
    const auto live = live_moment({12, 2}, 2, 0);
    EXPECT_THAT(torch->check("a", "exp_avg", live, 0), testing::IsEmpty());
    EXPECT_THAT(torch->check("a", "exp_avg", live_moment({10, 2}, 2, 0), 0), testing::SizeIs(1));
    EXPECT_THAT(torch->check("a", "nothing", live, 0), testing::SizeIs(1));
    EXPECT_THAT(full->check("a", "exp_avg", live, 0).at(0).found,
                testing::HasSubstr("__1_0.distcp truncated: 10 B"));
}

TEST(CheckpointSource, AMissingFileIsFoundBeforeAnythingIsRead) {
    const auto memory = copy_to_memory(swap_path("v2_w2_even"), "c");
    memory->remove("c/__1_0.distcp");
    Checkpoint checkpoint(*memory, "c");
    const auto source = make_checkpoint_source(checkpoint, "optimizer", Checks::full);
    const auto found = source->check("a", "exp_avg", live_moment({12, 2}, 2, 0), 0);
    ASSERT_EQ(found.size(), 1U);
    EXPECT_EQ(found[0].found, "__1_0.distcp missing");
    EXPECT_EQ(found[0].detail, "chunk [6:12, 0:2] cannot be read");
}

TEST(CheckpointSource, ADamagedItemIsFoundByTheRankThatWouldReadIt) {
    const auto memory = copy_to_memory(swap_path("v2_w2_even"), "c");
    auto& bytes = memory->file_bytes("c/__1_0.distcp");
    std::fill(bytes.begin(), bytes.end(), std::byte{0});
    Checkpoint checkpoint(*memory, "c");
    const auto source = make_checkpoint_source(checkpoint, "optimizer", Checks::full);
    EXPECT_THAT(source->check("a", "exp_avg", live_moment({12, 2}, 2, 1), 1), testing::SizeIs(1));
}

TEST(CheckpointSource, ExchangedChunksAreFoundByTheShapesOfTheirItems) {
    const auto storage = harness::make_posix_storage();
    Checkpoint checkpoint(*storage, dcp_path("ranks6_fsdp_tp_uneven_bad_geometry"));
    const harness::TensorReader reader(checkpoint, Checks::full);
    const auto whole = optim::make_host_tensor(std::vector<float>(14), {7, 2});
    const auto found = reader.check("w", "w", whole, 0);
    ASSERT_EQ(found.size(), 1U);
    EXPECT_EQ(found[0].found, "__4_0.distcp at 0 holds fp32 [0,2]");
    EXPECT_EQ(found[0].detail, "chunk [6:7, 0:2] cannot be read");
    const auto even = optim::make_host_tensor(std::vector<float>(24), {12, 2});
    EXPECT_THAT(reader.check("even", "even", even, 0), testing::IsEmpty());
}

TEST(CheckpointSource, AnotherElementTypeIsRefused) {
    const auto storage = harness::make_posix_storage();
    Checkpoint checkpoint(*storage, dcp_path("single_adamw_bf16"));
    const auto source = make_checkpoint_source(checkpoint, "optimizer", Checks::full);
    const std::string fqn = source->fqns().at(0);
    const Shape shape = source->entries(fqn).at(1).global_shape;
    const auto live = optim::make_host_tensor(
        std::vector<float>(static_cast<std::size_t>(optim::numel(shape))), shape);
    const auto found = source->check(fqn, "exp_avg", live, 0);
    ASSERT_EQ(found.size(), 1U);
    EXPECT_EQ(found[0].expected, "fp32");
    EXPECT_EQ(found[0].found, "bf16");
}

TEST(CheckpointSource, NestedAndFlattenedFormsSayTheSame) {
    const auto storage = harness::make_posix_storage();
    Checkpoint nested(*storage, dcp_path("ranks2_shard0"));
    Checkpoint flat(*storage, dcp_path("ranks2_flatten_optimizer"));
    const auto from_nested = make_checkpoint_source(nested, "optimizer", Checks::full);
    const auto from_flat = make_checkpoint_source(flat, "optimizer", Checks::full);
    EXPECT_THAT(from_flat->fqns(), testing::Not(testing::IsEmpty()));
    for (const std::string& fqn : from_flat->fqns()) {
        EXPECT_THAT(from_flat->entries(fqn), testing::SizeIs(3)) << fqn;
    }
    ASSERT_EQ(from_nested->param_groups().size(), 1U);
    ASSERT_EQ(from_flat->param_groups().size(), 1U);
    const optim::Dict& group = from_flat->param_groups()[0];
    EXPECT_EQ(group.find("params")->get_if<optim::List>()->items.size(), from_flat->fqns().size());
    for (const char* key : {"lr", "betas", "eps", "weight_decay", "amsgrad"}) {
        ASSERT_NE(group.find(key), nullptr) << key;
        EXPECT_TRUE(optim::same_value(*group.find(key), *from_nested->param_groups()[0].find(key)))
            << key;
    }
}

TEST(CheckpointSource, NoneLeavesAndTensorRatesComeAsTheyWereSaved) {
    const auto storage = harness::make_posix_storage();
    Checkpoint with_none(*storage, swap_path("v2_w2_even"));
    bool has_none = false;
    const auto source = make_checkpoint_source(with_none, "optimizer", Checks::full);
    for (const optim::SourceEntry& entry : source->entries("a")) {
        has_none = has_none || (!entry.is_tensor && entry.value.is_none());
    }
    EXPECT_TRUE(has_none);
    Checkpoint with_tensor(*storage, dcp_path("single_tensor_lr"));
    const auto rates = make_checkpoint_source(with_tensor, "optimizer", Checks::full);
    const auto* rate = rates->param_groups().at(0).find("lr")->get_if<optim::Tensor>();
    ASSERT_NE(rate, nullptr);
    EXPECT_EQ(rate->local_numel(), 1);
}

}  // namespace
}  // namespace swaplab::tests
