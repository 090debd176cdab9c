/// Chunks that do not cover their tensor exactly once.

#include "checkpoint/tiling.hpp"

#include "checkpoint/metadata_codec.hpp"
#include "support/copy_tree.hpp"

#include "swaplab/harness/tensor_reader.hpp"

#include <gtest/gtest.h>

namespace swaplab::tests {
namespace {

using harness::Box;
using harness::Shape;
using harness::TensorEntry;

TensorEntry entry_of(Shape shape, const std::vector<Box>& boxes) {
    TensorEntry entry;
    entry.global_shape = std::move(shape);
    for (const Box& box : boxes) {
        entry.chunks.push_back({box, std::nullopt, std::nullopt});
    }
    return entry;
}

/// The first fault in words; empty when there is none.
std::string fault_of(const TensorEntry& entry) {
    const auto faults = harness::tiling_faults(entry);
    return faults.empty() ? "" : harness::describe(faults.front(), entry);
}

TEST(Tiling, EveryFaultIsToldWithItsChunks) {
    const Box top{{0, 0}, {2, 3}};
    const Box bottom{{2, 0}, {2, 3}};
    const Box none{{4, 0}, {0, 3}};
    EXPECT_EQ(fault_of(entry_of({4, 3}, {top, bottom, none, none})), "");
    EXPECT_EQ(fault_of(entry_of({4, 3}, {top})), "6 of 12 elements of [4,3] are in no chunk");
    EXPECT_EQ(fault_of(entry_of({4, 3}, {top, bottom, {{1, 1}, {1, 1}}})),
              "chunks [0:2, 0:3] and [1:2, 1:2] overlap");
    EXPECT_EQ(fault_of(entry_of({3, 3}, {top, bottom})), "chunk [2:4, 0:3] lies outside [3,3]");
    EXPECT_EQ(fault_of(entry_of({4, 3}, {top, bottom, {{5, 0}, {0, 3}}})),
              "chunk [5:5, 0:3] lies outside [4,3]");
}

TEST(Tiling, ScalarsAndEmptyTensorsAreTensorsToo) {
    EXPECT_EQ(fault_of(entry_of({}, {{{}, {}}})), "");
    EXPECT_EQ(fault_of(entry_of({}, {})), "1 of 1 elements of [] are in no chunk");
    EXPECT_EQ(fault_of(entry_of({}, {{{}, {}}, {{}, {}}})), "chunks [] and [] overlap");
    EXPECT_EQ(fault_of(entry_of({0, 4}, {{{0, 0}, {0, 4}}})), "");
    EXPECT_EQ(fault_of(entry_of({0, 4}, {})), "");
}

TEST(Tiling, ManyColumnsAreCheckedWithoutComparingAllPairs) {
    constexpr std::int64_t columns = 20000;
    std::vector<Box> boxes;
    for (std::int64_t column = 0; column < columns; ++column) {
        boxes.push_back({{0, column}, {3, 1}});
    }
    EXPECT_EQ(fault_of(entry_of({3, columns}, boxes)), "");
    boxes.back().offsets[1] = 7;
    EXPECT_THAT(fault_of(entry_of({3, columns}, boxes)), testing::HasSubstr("overlap"));
}

TEST(Tiling, AGapIsRefusedBeforeALoad) {
    const auto memory = copy_to_memory(SWAPLAB_TEST_DATA "/swap_adamw/checkpoints/v2_w2_even", "c");
    auto& bytes = memory->file_bytes("c/.metadata");
    harness::Metadata metadata = harness::decode_metadata(bytes);
    for (harness::MetadataEntry& entry : metadata.entries) {
        if (entry.key == "optimizer.state.a.exp_avg") {
            std::get<TensorEntry>(entry.data).chunks.pop_back();
        }
    }
    const std::string encoded = harness::encode_metadata(metadata);
    const auto raw = std::as_bytes(std::span(encoded));
    bytes.assign(raw.begin(), raw.end());
    harness::Checkpoint checkpoint(*memory, "c");
    const harness::TensorReader reader(checkpoint, harness::Checks::full);
    const optim::ShardSpec spec{{12, 2}, {2}, {optim::Placement::shard(0)}, {}};
    const auto live = optim::make_host_tensor(std::vector<float>(12), {6, 2}, spec);
    const auto found = reader.check("optimizer.state.a.exp_avg", "a", live, 0);
    ASSERT_EQ(found.size(), 1U);
    EXPECT_EQ(found[0].found, "broken tiling");
    EXPECT_EQ(found[0].detail, "12 of 24 elements of [12,2] are in no chunk");
    EXPECT_THROW(static_cast<void>(checkpoint.read_tensor("optimizer.state.a.exp_avg")),
                 harness::CheckpointCorrupt);
}

}  // namespace
}  // namespace swaplab::tests
