/// Parts of tensors, whatever the chunks, strides and blocks.

#include "swaplab/harness/checkpoint.hpp"
#include "swaplab/sim/random.hpp"
#include "swaplab/sim/world.hpp"

#include <gtest/gtest.h>

namespace swaplab::tests {
namespace {

using harness::Box;
using harness::Checkpoint;
using harness::Shape;

std::string checkpoint_path(const std::string& name) {
    return std::string(SWAPLAB_TEST_DATA "/dcp/checkpoints/") + name + "/ckpt";
}

Box random_box(const Shape& shape, sim::Rng& rng) {
    Box box;
    for (const std::int64_t size : shape) {
        const auto end = static_cast<std::int64_t>(rng.below(static_cast<std::uint64_t>(size) + 1));
        const auto begin =
            static_cast<std::int64_t>(rng.below(static_cast<std::uint64_t>(end) + 1));
        box.offsets.push_back(begin);
        box.sizes.push_back(end - begin);
    }
    return box;
}

/// The box's bytes, element by element.
std::vector<std::byte> cut(const std::vector<std::byte>& whole, const Shape& shape, const Box& box,
                           std::uint64_t item) {
    std::vector<std::byte> bytes;
    for (std::int64_t i = 0; i < optim::numel(box.sizes); ++i) {
        std::int64_t rest = i;
        std::int64_t element = 0;
        std::int64_t stride = 1;
        for (std::size_t dim = shape.size(); dim-- > 0;) {
            element += (box.offsets[dim] + rest % box.sizes[dim]) * stride;
            rest /= box.sizes[dim];
            stride *= shape[dim];
        }
        const auto begin = whole.begin() + static_cast<std::ptrdiff_t>(item) * element;
        bytes.insert(bytes.end(), begin, begin + static_cast<std::ptrdiff_t>(item));
    }
    return bytes;
}

TEST(Boxes, AnyPartOfAnyBoxIsReadFromTheRightPlaces) {
    const auto storage = harness::make_posix_storage();
    sim::Rng rng(11);
    for (const char* name : {"single_tensor_kinds", "single_large_period", "ranks4_2d_mixed",
                             "ranks4_shard1_uneven", "ranks4_fsdp_tp_strided", "ranks3_shard0",
                             "single_empty_tensor", "ranks4_shard0_uneven"}) {
        Checkpoint checkpoint(*storage, checkpoint_path(name));
        for (const harness::MetadataEntry& entry : checkpoint.metadata().entries) {
            if (entry.tensor() == nullptr) {
                continue;
            }
            const std::vector<std::byte> whole = checkpoint.read_tensor(entry.key);
            const Shape& shape = entry.tensor()->global_shape;
            for (int i = 0; i < 20; ++i) {
                const Box box = random_box(shape, rng);
                const auto expected = cut(whole, shape, box, sim::size_of(entry.tensor()->dtype));
                const std::uint64_t offset = rng.below(expected.size() + 1);
                std::vector<std::byte> found(rng.below(expected.size() - offset + 1));
                checkpoint.read_box(entry.key, box, offset, found);
                EXPECT_TRUE(std::equal(found.begin(), found.end(),
                                       expected.begin() + static_cast<std::ptrdiff_t>(offset)))
                    << name << " " << entry.key << " " << optim::to_string(box);
            }
        }
    }
}

TEST(Boxes, AFlippedBitIsFoundByReadingInBlocks) {
    constexpr std::int64_t elements = 100000;
    const auto memory = harness::make_memory_storage();
    sim::rethrow_first(sim::run_ranks({.size = 1}, [&](sim::Communicator& communicator) {
        optim::Dict tree;
        tree.set("w", optim::make_host_tensor(std::vector<float>(elements, 1.5F), {elements}));
        harness::save_checkpoint(communicator, *memory, "c", tree);
    }));
    memory->file_bytes("c/__0_0.distcp")[100000] ^= std::byte{1};
    Checkpoint checkpoint(*memory, "c");
    std::vector<std::byte> block(100000);
    const Box whole{{0}, {elements}};
    for (const std::uint64_t offset : {0U, 100000U, 200000U}) {
        checkpoint.read_box("w", whole, offset, block);
    }
    EXPECT_THROW(checkpoint.read_box("w", whole, 300000, block), harness::CheckpointCorrupt);
}

TEST(Boxes, WhatNoChunkHoldsIsRefusedOrLeftAlone) {
    const auto storage = harness::make_posix_storage();
    Checkpoint checkpoint(*storage, checkpoint_path("ranks2_shard0"));
    std::vector<std::byte> out(8 * 16, std::byte{0xab});
    const Box beyond{{4, 0}, {8, 4}};
    EXPECT_THROW(checkpoint.read_box("model.embed.weight", beyond, 0, out),
                 harness::CheckpointCorrupt);
    std::fill(out.begin(), out.end(), std::byte{0xab});
    EXPECT_EQ(checkpoint.read_present("model.embed.weight", beyond, 0, out), 2U * 16U);
    EXPECT_TRUE(std::all_of(out.begin() + 32, out.end(),
                            [](std::byte byte) { return byte == std::byte{0xab}; }));
}

}  // namespace
}  // namespace swaplab::tests
