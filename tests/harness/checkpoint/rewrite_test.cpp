/// What we write is, byte for byte, what PyTorch 2.8 wrote for the same state dict.

#include "checkpoint/state_tree.hpp"

#include "swaplab/harness/checkpoint.hpp"
#include "swaplab/sim/world.hpp"

#include <gtest/gtest.h>

#include <filesystem>

namespace swaplab::tests {
namespace {

using harness::Checkpoint;
using optim::Value;

std::vector<std::byte> bytes_of(harness::Storage& storage, const std::string& path) {
    const auto file = storage.open(path);
    std::vector<std::byte> bytes(file->size());
    file->read(0, bytes);
    return bytes;
}

/// The part of `saved` that `rank` of `ranks` holds under Shard(0); 0-dim tensors stay plain.
optim::Tensor shard_of(const optim::Tensor& saved, int ranks, int rank) {
    if (saved.global_shape().empty()) {
        return saved;
    }
    const optim::ShardSpec spec{saved.global_shape(), {ranks}, {optim::Placement::shard(0)}, {}};
    const optim::Box box = spec.box_of(rank).value();
    const std::vector<std::byte> all = saved.to_bytes();
    const std::uint64_t row_bytes =
        all.size() / static_cast<std::uint64_t>(std::max<std::int64_t>(saved.global_shape()[0], 1));
    const auto begin =
        box.sizes[0] == 0 ? 0 : static_cast<std::uint64_t>(box.offsets[0]) * row_bytes;
    auto storage = optim::make_host_storage(static_cast<std::uint64_t>(box.sizes[0]) * row_bytes);
    storage->write(0, std::span(all).subspan(begin, storage->bytes()));
    return {saved.dtype(), box.sizes, std::move(storage), spec};
}

Value sharded(const Value& value, int ranks, int rank) {
    if (const auto* tensor = value.get_if<optim::Tensor>()) {
        return shard_of(*tensor, ranks, rank);
    }
    if (const auto* dict = value.get_if<optim::Dict>()) {
        optim::Dict result;
        for (const auto& item : dict->items) {
            result.items.emplace_back(item.first, sharded(item.second, ranks, rank));
        }
        return result;
    }
    const auto* list = value.get_if<optim::List>();
    if (list == nullptr) {
        return value;
    }
    optim::List result;
    for (const Value& item : list->items) {
        result.items.push_back(sharded(item, ranks, rank));
    }
    return result;
}

void expect_equal_files(const std::string& name, int ranks) {
    const std::string original =
        std::string(SWAPLAB_TEST_DATA "/dcp/checkpoints/") + name + "/ckpt";
    const auto posix = harness::make_posix_storage();
    const auto memory = harness::make_memory_storage();
    const Value tree = Checkpoint(*posix, original).read_all();
    sim::rethrow_first(sim::run_ranks({.size = ranks}, [&](sim::Communicator& communicator) {
        const Value mine = ranks == 1 ? tree : sharded(tree, ranks, communicator.rank());
        harness::SaveOptions options;
        options.chunk_bytes = 100;  // smaller than an item: every piece crosses a block
        harness::save_checkpoint(communicator, *memory, "again", mine, options);
    }));
    for (int rank = 0; rank < ranks; ++rank) {
        const std::string file = "/__" + std::to_string(rank) + "_0.distcp";
        EXPECT_EQ(bytes_of(*memory, "again" + file), bytes_of(*posix, original + file))
            << name << file;
    }
    const auto expected = Checkpoint(*posix, original).metadata().entries;
    const auto found = Checkpoint(*memory, "again").metadata().entries;
    ASSERT_EQ(found.size(), expected.size());
    for (std::size_t i = 0; i < found.size(); ++i) {
        EXPECT_EQ(found[i].key, expected[i].key);
    }
}

TEST(Rewrite, OneRankFilesEqualPytorchsByteForByte) {
    for (const char* name :
         {"single_adamw_fp32", "single_adamw_fp32_amsgrad", "single_adamw_bf16",
          "single_adamw_fp16", "single_adamw_fp64", "single_hyper_odd", "single_tensor_lr",
          "single_empty_tensor", "single_none_moment", "single_large_period",
          "single_before_first_step", "single_raw_optimizer_dict"}) {
        expect_equal_files(name, 1);
    }
}

TEST(Rewrite, ShardedFilesEqualPytorchsByteForByte) {
    expect_equal_files("ranks2_shard0", 2);
    expect_equal_files("ranks2_before_first_step", 2);
    expect_equal_files("ranks3_shard0", 3);
    expect_equal_files("ranks4_shard0_uneven", 4);
}

}  // namespace
}  // namespace swaplab::tests
