#include "swaplab/optim/value.hpp"

#include <array>
#include <limits>

namespace swaplab::optim {
namespace {

TEST(Repr, PrintsValuesAsPythonDoes) {
    EXPECT_EQ(repr(None{}), "None");
    EXPECT_EQ(repr(true), "True");
    EXPECT_EQ(repr(std::int64_t{-3}), "-3");
    EXPECT_EQ(repr(BigInt{"1000000000000000000000"}), "1000000000000000000000");
    EXPECT_EQ(repr(0.01), "0.01");
    EXPECT_EQ(repr(1.0), "1.0");
    EXPECT_EQ(repr(1e-8), "1e-08");
    EXPECT_EQ(repr(1e16), "1e+16");
    EXPECT_EQ(repr(-std::numeric_limits<double>::infinity()), "-inf");
    EXPECT_EQ(repr(-std::numeric_limits<double>::quiet_NaN()), "nan");
    EXPECT_EQ(repr("it's\n"), "\"it's\\n\"");
    EXPECT_EQ(repr("a'\"b"), "'a\\'\"b'");
    EXPECT_EQ(repr(PyBytes{"\x01z\xff"}), "b'\\x01z\\xff'");
    EXPECT_EQ(repr(Tuple{{0.9, 0.999}}), "(0.9, 0.999)");
    EXPECT_EQ(repr(Tuple{{0.9}}), "(0.9,)");
    EXPECT_EQ(repr(List{{"a", "b"}}), "['a', 'b']");
    EXPECT_EQ(repr(make_host_tensor({1, 2}, {2, 1})), "tensor float32 [2,1]");
    EXPECT_EQ(repr(Opaque{"decimal.Decimal", 7}), "object decimal.Decimal");
    Dict dict;
    dict.set("k", std::int64_t{1});
    EXPECT_EQ(repr(dict), "{'k': 1}");
    dict.ordered_dict = true;
    EXPECT_EQ(repr(dict), "OrderedDict({'k': 1})");
}

TEST(SameValue, KindsDifferEvenWhereNumbersAreEqual) {
    EXPECT_FALSE(same_value(1.0, std::int64_t{1}));
    EXPECT_FALSE(same_value(true, std::int64_t{1}));
    EXPECT_FALSE(same_value(List{}, Tuple{}));
    EXPECT_FALSE(same_value("a", PyBytes{"a"}));
    EXPECT_TRUE(same_value(BigInt{"7"}, BigInt{"7"}));
}

TEST(SameValue, FloatsCompareByBitsAndAnyNaNEqualsAnyNaN) {
    const double nan = std::numeric_limits<double>::quiet_NaN();
    EXPECT_TRUE(same_value(nan, -nan));
    EXPECT_FALSE(same_value(0.0, -0.0));
}

TEST(SameValue, OrderCountsBetweenOrderedDictsOnly) {
    Dict ab;
    ab.set("a", 1.0);
    ab.set("b", 2.0);
    Dict ba;
    ba.set("b", 2.0);
    ba.set("a", 1.0);
    EXPECT_TRUE(same_value(ab, ba));
    ab.ordered_dict = ba.ordered_dict = true;
    EXPECT_FALSE(same_value(ab, ba));
    ba.ordered_dict = false;
    EXPECT_FALSE(same_value(ab, ba));
}

TEST(SameValue, TensorsCompareByTypeShapeAndBytes) {
    const Tensor tensor = make_host_tensor({1, 2}, {2});
    EXPECT_TRUE(same_value(tensor, make_host_tensor({1, 2}, {2})));
    EXPECT_FALSE(same_value(tensor, make_host_tensor({1, 3}, {2})));
    EXPECT_FALSE(same_value(tensor, make_host_tensor({1, 2}, {2, 1})));
    EXPECT_TRUE(same_value(make_host_tensor({}, {0}), make_host_tensor({}, {0})));
}

TEST(Dicts, SetReplacesInPlaceAndFindIgnoresIntKeys) {
    Dict dict;
    dict.items.emplace_back(std::int64_t{0}, "zero");
    dict.set("lr", 0.1);
    dict.set("eps", 0.2);
    dict.set("lr", 0.3);
    EXPECT_EQ(repr(dict), "{0: 'zero', 'lr': 0.3, 'eps': 0.2}");
    EXPECT_EQ(dict.find("0"), nullptr);
}

TEST(Tensors, CopiesShareAndClonesDoNot) {
    const Tensor tensor = make_host_tensor({1, 2}, {2});
    const Tensor shared = tensor;
    const Tensor clone = tensor.clone_to_host();
    shared.storage().write(4, std::as_bytes(std::span<const float>(std::array{9.0F})));
    EXPECT_THAT(to_floats(tensor), ::testing::ElementsAre(1, 9));
    EXPECT_THAT(to_floats(clone), ::testing::ElementsAre(1, 2));
}

TEST(Tensors, ShardGivesTheGlobalShape) {
    const ShardSpec spec{{4}, {2}, {Placement::shard(0)}, {}};
    const Tensor part = make_host_tensor({1, 2}, {2}, spec);
    EXPECT_EQ(part.global_shape(), (Shape{4}));
    EXPECT_EQ(part.without_shard().global_shape(), (Shape{2}));
    EXPECT_EQ(part.clone_to_host().shard(), spec);
}

TEST(TensorsDeathTest, StorageOfAnotherSizeIsAProgrammersError) {
    EXPECT_DEATH(Tensor(DType::float64, {2}, make_host_storage(8)), "storage of 8 B for float64");
    std::array<std::byte, 5> out{};
    EXPECT_DEATH(make_host_storage(8)->read(4, out), "bytes \\[4, 9\\) of a storage of 8");
}

}  // namespace
}  // namespace swaplab::optim
