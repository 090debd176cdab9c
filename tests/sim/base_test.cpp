#include "swaplab/sim/digest.hpp"
#include "swaplab/sim/dtype.hpp"
#include "swaplab/sim/random.hpp"
#include "swaplab/sim/units.hpp"

#include <cstdint>

namespace swaplab::sim {
namespace {

TEST(Units, CountsSpeakOfOneAndOfMany) {
    EXPECT_EQ(count_of(0, "file"), "0 files");
    EXPECT_EQ(count_of(1, "file"), "1 file");
    EXPECT_EQ(count_of(1200, "file"), "1,200 files");
    EXPECT_EQ(count_of(1, "item holds", "items hold"), "1 item holds");
    EXPECT_EQ(count_of(2, "item holds", "items hold"), "2 items hold");
}

TEST(Units, BytesPrintExactlyAndFromOneMebibyteAlsoInMebibytes) {
    EXPECT_EQ(format_bytes(0), "0 B");
    EXPECT_EQ(format_bytes(32832), "32,832 B");
    EXPECT_EQ(format_bytes(1_MiB), "1,048,576 B (1.0 MiB)");
}

TEST(DTypes, EveryNameLeadsBackToItsType) {
    for (int i = 0; i <= static_cast<int>(DType::uint64); ++i) {
        const auto dtype = static_cast<DType>(i);
        EXPECT_EQ(dtype_from_name(name_of(dtype)), dtype);
        EXPECT_EQ(dtype_from_name(short_name_of(dtype)), dtype);
        EXPECT_GT(size_of(dtype), 0U);
    }
    EXPECT_EQ(dtype_from_name("complex64"), std::nullopt);
}

TEST(Random, SequenceIsTheSameOnEveryMachine) {
    Rng rng(42);
    EXPECT_EQ(rng.next(), 0xbdd732262feb6e95ULL);
    EXPECT_EQ(rng.next(), 0x28efe333b266f103ULL);
}

TEST(Random, BelowReachesEveryValueAndNoOther) {
    Rng rng(7);
    std::vector<int> seen(5, 0);
    for (int i = 0; i < 500; ++i) {
        ++seen.at(rng.below(5));
    }
    EXPECT_THAT(seen, ::testing::Each(::testing::Gt(50)));
}

TEST(Digest, Sha256MatchesThePublishedExample) {
    const std::string text = "abc";
    EXPECT_EQ(sha256_hex(std::as_bytes(std::span(text.data(), text.size()))),
              "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(Digest, RollingDigestDependsOnOrderAndBoundaries) {
    RollingDigest ab;
    ab.add(std::string_view("a"));
    ab.add(std::string_view("b"));
    RollingDigest ba;
    ba.add(std::string_view("b"));
    ba.add(std::string_view("a"));
    RollingDigest joined;
    joined.add(std::string_view("ab"));
    EXPECT_NE(ab.value(), ba.value());
    EXPECT_NE(ab.value(), joined.value());
}

}  // namespace
}  // namespace swaplab::sim
