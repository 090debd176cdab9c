#include "inspect/roles.hpp"

#include "inspect/element.hpp"

#include "swaplab/harness/dcp_metadata.hpp"

#include <cmath>

namespace swaplab::harness {
namespace {

TEST(Roles, AStateKeyIsTakenApart) {
    const auto key = state_key("train.optimizer.state.layers.0.weight.exp_avg_sq");
    ASSERT_TRUE(key);
    EXPECT_EQ(key->prefix, "train.optimizer.state.");
    EXPECT_EQ(key->fqn, "layers.0.weight");
    EXPECT_EQ(key->leaf, "exp_avg_sq");
    EXPECT_TRUE(key->is_moment());
    EXPECT_FALSE(state_key("state.a.step")->is_moment());
}

TEST(Roles, OtherKeysAreNoState) {
    for (const char* key : {"model.a", "optimizer.param_groups.0.lr", "mystate.a.exp_avg",
                            "optimizer.state.exp_avg", "optimizer.state.a.momentum", ""}) {
        EXPECT_FALSE(state_key(key)) << key;
    }
}

TEST(Roles, AParameterIsTheKeyThatEndsInItsNameWithTheShortestPrefix) {
    const KnownShapes known{"", {{"model.x.a", {9}}, {"model.a", {4}}, {"model.aa", {5}}}};
    EXPECT_EQ(known.find("a")->first, "model.a");
    EXPECT_EQ(known.find("x.a")->first, "model.x.a");
    EXPECT_EQ(known.find("model.aa")->first, "model.aa");
    EXPECT_EQ(known.find("b"), nullptr);
}

TEST(Roles, EqualPrefixesDecideOnlyWhenTheirShapesAgree) {
    EXPECT_NE((KnownShapes{"", {{"model.a", {4}}, {"ema.a", {4}}}}.find("a")), nullptr);
    EXPECT_EQ((KnownShapes{"", {{"model.a", {4}}, {"ema.a", {5}}}}.find("a")), nullptr);
}

TEST(Roles, IntegerIdsMatchOnlyThemselves) {
    const KnownShapes known{"", {{"model.layers.0", {4}}, {"1", {3}}}};
    EXPECT_EQ(known.find("0"), nullptr);
    EXPECT_EQ(known.find("1")->second, optim::Shape{3});
}

TEST(Roles, TheWriterIsInTheFileName) {
    EXPECT_EQ(writer_of("__12_3.distcp"), 12);
    for (const char* name : {"__x_0.distcp", "_1_0.distcp", "__1.distcp", "__1_0.bin", ""}) {
        EXPECT_EQ(writer_of(name), std::nullopt) << name;
    }
}

TEST(Elements, UlpsAreCountedAcrossZeroAndNotForNan) {
    using sim::DType;
    EXPECT_EQ(ulp_distance(DType::float32, 0x3f800000, 0x3f800001), 1U);
    EXPECT_EQ(ulp_distance(DType::float32, 0x80000001, 0x00000001), 2U);
    EXPECT_EQ(ulp_distance(DType::float32, 0x80000000, 0x00000000), 0U);
    EXPECT_EQ(ulp_distance(DType::float32, 0x7fc00000, 0x00000000), std::nullopt);
    EXPECT_EQ(ulp_distance(DType::bfloat16, 0x3f80, 0x3f81), 1U);
    EXPECT_EQ(ulp_distance(DType::int32, 1, 2), std::nullopt);
}

TEST(Elements, EveryDtypeReadsItsNumber) {
    using sim::DType;
    EXPECT_EQ(value_of_bits(DType::float16, 0x3e00), 1.5);
    EXPECT_EQ(value_of_bits(DType::float16, 0x8001), -std::ldexp(1.0, -24));
    EXPECT_TRUE(std::isinf(value_of_bits(DType::float16, 0x7c00)));
    EXPECT_EQ(value_of_bits(DType::bfloat16, 0xbfc0), -1.5);
    EXPECT_EQ(value_of_bits(DType::int8, 0xff), -1);
    EXPECT_EQ(value_of_bits(DType::uint8, 0xff), 255);
    EXPECT_EQ(hex_bits(DType::int16, 0xff), "00ff");
}

}  // namespace
}  // namespace swaplab::harness
