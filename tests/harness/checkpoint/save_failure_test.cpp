/// Saves that fail or lose power leave one whole checkpoint: the old one or the new one.

#include "checkpoint/publisher.hpp"
#include "support/storage_wrappers.hpp"

#include "swaplab/harness/checkpoint.hpp"
#include "swaplab/sim/world.hpp"

#include <gtest/gtest.h>

namespace swaplab::tests {
namespace {

using harness::Checkpoint;
using harness::StorageError;
using optim::Dict;
using optim::Value;

constexpr int ranks = 2;

/// A sharded tensor, a replica and a value, all of which tell `generation`.
Value tree_of(int generation, int rank) {
    const optim::ShardSpec spec{{5, 3}, {ranks}, {optim::Placement::shard(0)}, {}};
    const optim::Box box = spec.box_of(rank).value();
    const std::vector<float> values(static_cast<std::size_t>(optim::numel(box.sizes)),
                                    static_cast<float>(generation));
    Dict tree;
    tree.set("w", optim::make_host_tensor(values, box.sizes, spec));
    tree.set("step", optim::make_scalar(static_cast<float>(generation)));
    tree.set("generation", std::int64_t{generation});
    return tree;
}

std::vector<sim::RankResult> save(harness::Storage& storage, int generation,
                                  const harness::SaveOptions& options = {}) {
    return sim::run_ranks({.size = ranks}, [&](sim::Communicator& communicator) {
        harness::save_checkpoint(communicator, storage, "runs/now",
                                 tree_of(generation, communicator.rank()), options);
    });
}

bool failed_everywhere(const std::vector<sim::RankResult>& results) {
    return std::all_of(results.begin(), results.end(), [](const sim::RankResult& result) {
        return result.end == sim::RankResult::End::threw;
    });
}

/// The generation that `directory` holds in all of its parts; -1 when they differ.
int generation_in(harness::Storage& storage, const std::string& directory = "runs/now") {
    Checkpoint checkpoint(storage, directory);
    const Value tree = checkpoint.read_all();
    const auto& dict = *tree.get_if<Dict>();
    const auto generation = static_cast<int>(*dict.find("generation")->get_if<std::int64_t>());
    for (const char* key : {"w", "step"}) {
        for (const float value : optim::to_floats(*dict.find(key)->get_if<optim::Tensor>())) {
            if (value != static_cast<float>(generation)) {
                return -1;
            }
        }
    }
    return generation;
}

std::int64_t count_operations() {
    const auto memory = harness::make_memory_storage();
    sim::rethrow_first(save(*memory, 1));
    FailingStorage counting(*memory);
    sim::rethrow_first(save(counting, 2));
    return counting.count();
}

TEST(SaveFailure, AnyFailingOperationLeavesTheOldCheckpointAndThrowsOnAllRanks) {
    const std::int64_t operations = count_operations();
    ASSERT_GE(operations, 15);
    for (std::int64_t i = 1; i <= operations; ++i) {
        const auto memory = harness::make_memory_storage();
        sim::rethrow_first(save(*memory, 1));
        FailingStorage failing(*memory);
        failing.fail_at(i);
        const auto results = save(failing, 2);
        const bool failed = failed_everywhere(results);
        EXPECT_EQ(generation_in(*memory), failed ? 1 : 2) << "operation " << i;
        // Removing the replaced checkpoint is the last operation: it alone may fail unseen.
        EXPECT_EQ(failed, i < operations) << "operation " << i;
        sim::rethrow_first(save(*memory, 3));
        EXPECT_EQ(generation_in(*memory), 3) << "operation " << i;
        EXPECT_FALSE(memory->exists("runs/now.incomplete")) << "operation " << i;
    }
}

TEST(SaveFailure, TheErrorNamesWhatWasLeftAndWhatSurvives) {
    const auto memory = harness::make_memory_storage();
    sim::rethrow_first(save(*memory, 1));
    FaultyStorage faulty(*memory, [](const std::string& operation, const std::string& path) {
        if (operation == "write" && path.ends_with("__1_0.distcp")) {
            throw StorageError(
                "cannot write: no space left",
                {{"operation", "write"}, {"file", path}, {"reason", "no space left"}});
        }
    });
    for (const sim::RankResult& result : save(faulty, 2)) {
        try {
            std::rethrow_exception(result.error);
        } catch (const StorageError& error) {
            EXPECT_THAT(error.what(), testing::HasSubstr("runs/now is untouched"));
            EXPECT_THAT(error.what(), testing::HasSubstr("remove runs/now.incomplete"));
            EXPECT_THAT(error.fields(),
                        testing::IsSupersetOf({sim::ErrorField{"rank", "rank 1"},
                                               {"reason", "no space left"},
                                               {"left_behind", "runs/now.incomplete"}}));
        }
    }
}

TEST(SaveFailure, PowerLossAtAnyOperationLeavesOneWholeCheckpoint) {
    for (const bool late_names : {false, true}) {
        for (std::size_t i = 0; i < 200; ++i) {
            CrashStorage disk;
            sim::rethrow_first(save(disk, 1));
            std::unique_ptr<harness::MemoryStorage> found;
            std::size_t count = 0;
            FaultyStorage watched(disk, [&](const std::string&, const std::string&) {
                if (count++ == i) {
                    found = disk.power_loss(late_names);
                }
            });
            sim::rethrow_first(save(watched, 2));
            if (!found) {
                EXPECT_GE(i, 15U);
                EXPECT_EQ(generation_in(*disk.power_loss(late_names)), 2);
                break;
            }
            const int generation = generation_in(*found);
            EXPECT_TRUE(generation == 1 || generation == 2) << "operation " << i;
        }
    }
}

TEST(SaveFailure, PowerLossAfterAFirstSaveKeepsIt) {
    CrashStorage disk;
    sim::rethrow_first(save(disk, 7));
    EXPECT_EQ(generation_in(*disk.power_loss(false)), 7);
}

TEST(SaveFailure, AThrowFromAnyPhaseOnOneRankFailsTheSaveOnAll) {
    for (const std::string phase : {"plan", "validate", "stage", "publish"}) {
        const auto memory = harness::make_memory_storage();
        sim::rethrow_first(save(*memory, 1));
        const auto results = sim::run_ranks({.size = ranks}, [&](sim::Communicator& communicator) {
            harness::SaveOptions options;
            options.on_phase = [&](std::string_view now) {
                if (now == phase && communicator.rank() == 1) {
                    throw std::runtime_error("stop here");
                }
            };
            harness::save_checkpoint(communicator, *memory, "runs/now",
                                     tree_of(2, communicator.rank()), options);
        });
        EXPECT_TRUE(failed_everywhere(results)) << phase;
        EXPECT_EQ(generation_in(*memory), 1) << phase;
    }
}

TEST(SaveFailure, RanksThatDoNotMakeUpATensorAreRefusedTogether) {
    const auto memory = harness::make_memory_storage();
    const auto results = sim::run_ranks({.size = ranks}, [&](sim::Communicator& communicator) {
        Dict tree = *tree_of(1, 0).get_if<Dict>();
        if (communicator.rank() == 1) {
            tree.items.clear();
        }
        harness::save_checkpoint(communicator, *memory, "runs/now", tree, {});
    });
    EXPECT_TRUE(failed_everywhere(results));
    EXPECT_FALSE(memory->exists("runs/now"));
}

TEST(SaveFailure, WhatAnEarlierSaveLeftDoesNotGetIntoTheNextOne) {
    const auto memory = harness::make_memory_storage();
    memory->make_directory("runs/now.incomplete");
    memory->create("runs/now.incomplete/__7_0.distcp")->append(std::vector<std::byte>(9));
    sim::rethrow_first(save(*memory, 1));
    EXPECT_FALSE(memory->exists("runs/now/__7_0.distcp"));
    EXPECT_EQ(memory->list("runs/now").size(), 3U);
}

TEST(SaveFailure, ADirectoryWithOtherThingsIsNotReplaced) {
    const auto memory = harness::make_memory_storage();
    memory->make_directory("runs/now");
    memory->create("runs/now/thesis.tex")->append({});
    EXPECT_TRUE(failed_everywhere(save(*memory, 1)));
    EXPECT_TRUE(memory->exists("runs/now/thesis.tex"));
}

TEST(SaveFailure, ATensorInsideATupleIsRefusedByName) {
    const auto memory = harness::make_memory_storage();
    const auto results = sim::run_ranks({.size = 1}, [&](sim::Communicator& communicator) {
        Dict tree;
        tree.set("pair", optim::Tuple{{optim::make_scalar(1)}});
        harness::save_checkpoint(communicator, *memory, "runs/now", tree, {});
    });
    EXPECT_THROW(
        {
            try {
                sim::rethrow_first(results);
            } catch (const sim::ArgumentError& error) {
                EXPECT_THAT(error.fields(), testing::Contains(sim::ErrorField{"key", "pair"}));
                throw;
            }
        },
        sim::ArgumentError);
}

}  // namespace
}  // namespace swaplab::tests
