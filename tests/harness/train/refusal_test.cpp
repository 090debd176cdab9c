#include "fixture.hpp"

#include "swaplab/sim/world.hpp"

#include <algorithm>

namespace swaplab::harness {
namespace {

using optim::CheckpointRejected;
using optim::Mismatch;
using support::ParamSpec;
using testing::EngineRun;

/// A sound checkpoint "x" of two ranks.
std::unique_ptr<MemoryStorage> sound_checkpoint() {
    auto storage = make_memory_storage();
    support::on_ranks(2, [&](sim::Communicator& communicator) {
        EngineRun run(communicator, *storage);
        run.train(1, 3);
        run.engine.save_dcp("x");
    });
    return storage;
}

/// One written by the specimen that loses shards.
std::unique_ptr<MemoryStorage> lossy_checkpoint() {
    auto storage = make_memory_storage();
    support::on_ranks(2, [&](sim::Communicator& communicator) {
        EngineOptions options;
        options.checks = Checks::torch;
        EngineRun run(communicator, *storage, options, testing::specimen_with({"local_moments"}));
        run.train(1, 3);
        run.engine.save_dcp("x");
    });
    return storage;
}

bool names(const std::vector<Mismatch>& mismatches, const std::string& parameter,
           const std::string& key, const std::string& expected, const std::string& found) {
    return std::any_of(mismatches.begin(), mismatches.end(), [&](const Mismatch& m) {
        return m.parameter == parameter && m.key.ends_with(key) &&
               m.expected.find(expected) != std::string::npos &&
               m.found.find(found) != std::string::npos;
    });
}

struct Refusal {
    std::vector<ParamSpec> specs = testing::engine_specs;
    bool amsgrad = false;
    LoadRequest request = {};
};

/// Loads "x" on two ranks, which must refuse it on both and change nothing; returns why.
std::vector<Mismatch> refused_load(Storage& storage, const Refusal& how = {}) {
    std::vector<Mismatch> mismatches;
    int refused = 0;
    support::on_ranks(2, [&](sim::Communicator& communicator) {
        EngineRun run(communicator, storage, {}, testing::make_swap_adamw, how.amsgrad, how.specs);
        run.train(7, 9);
        const std::string before = fingerprint(run);
        try {
            run.engine.load_dcp("x", how.request);
        } catch (const CheckpointRejected& error) {
            ++refused;
            mismatches = error.mismatches();
        }
        EXPECT_EQ(fingerprint(run), before) << "rank " << communicator.rank();
        EXPECT_FALSE(run.optimizer->torn());
        run.train(10, 10);
    });
    EXPECT_EQ(refused, 2);
    return mismatches;
}

TEST(Refusal, NamesParameterKeyShapesAndLostRanks) {
    const auto storage = lossy_checkpoint();
    const std::vector<Mismatch> found = refused_load(*storage);
    EXPECT_TRUE(names(found, "a", "exp_avg", "[5,3]", "[2,3]"));
    const auto lost = std::find_if(found.begin(), found.end(), [](const Mismatch& mismatch) {
        return mismatch.parameter == "a" && mismatch.key.ends_with("exp_avg");
    });
    ASSERT_NE(lost, found.end());
    EXPECT_EQ(lost->lost_ranks, std::vector<int>{0});
    EXPECT_EQ(lost->detail, "shard of rank 0 lost: 9 of 15 elements (60.0 %)");
}

TEST(Refusal, DoesNotLookAtOptimizerStateThatIsNotAskedFor) {
    const auto storage = lossy_checkpoint();
    support::on_ranks(2, [&](sim::Communicator& communicator) {
        EngineRun run(communicator, *storage);
        LoadRequest request;
        request.load_states = false;
        EXPECT_NO_THROW(run.engine.load_dcp("x", request));
        request.load_args = false;
        EXPECT_NO_THROW(run.engine.load_dcp("x", request));
        request = {};
        request.optimizer = false;
        EXPECT_NO_THROW(run.engine.load_dcp("x", request));
    });
}

TEST(Refusal, ComparesParametersBeforeTheOptimizerChanges) {
    const auto storage = sound_checkpoint();
    Refusal shrunken;
    shrunken.specs[0].shape = {4, 3};
    EXPECT_TRUE(names(refused_load(*storage, shrunken), "a", "model.a", "[4,3]", "[5,3]"));
    Refusal unknown;
    unknown.specs.push_back({"e", {2}, testing::rows});
    EXPECT_TRUE(names(refused_load(*storage, unknown), "e", "model.e", "[2]", "missing"));
}

TEST(Refusal, ComparesTheOptimizerBeforeParametersChange) {
    const auto storage = sound_checkpoint();
    Refusal amsgrad;
    amsgrad.amsgrad = true;
    EXPECT_FALSE(refused_load(*storage, amsgrad).empty());
}

TEST(Refusal, NamesWhatIsWrongInTheModelAndInTheOptimizerAtOnce) {
    const auto storage = sound_checkpoint();
    Refusal both;
    both.amsgrad = true;
    both.specs[0].shape = {4, 3};
    const std::vector<Mismatch> found = refused_load(*storage, both);
    EXPECT_TRUE(names(found, "a", "model.a", "[4,3]", "[5,3]"));
    EXPECT_TRUE(names(found, "a", "exp_avg", "[4,3]", "[5,3]"));
}

TEST(Refusal, OfAStoredStepThatCountsNothingComesBeforeAParameterChanges) {
    const auto storage = make_memory_storage();
    support::on_ranks(2, [&](sim::Communicator& communicator) {
        EngineRun run(communicator, *storage);
        run.train(1, 3);
        optim::Dict model;
        for (const auto& param : run.rig.model()) {
            model.set(param->name, param->data);
        }
        optim::StateDict state = run.optimizer->state_dict();
        state.find("a")->set("step", optim::make_scalar(2.5F));
        optim::Dict tree;
        tree.set("model", std::move(model));
        tree.set("optimizer", optim::to_value(state));
        save_checkpoint(communicator, *storage, "x", tree);
    });
    EXPECT_TRUE(names(refused_load(*storage), "a", "step", "a whole number", "2.5"));
}

TEST(Refusal, HoldsUnderShadowStagingToo) {
    const auto storage = lossy_checkpoint();
    Refusal shadow;
    shadow.request.staging = optim::LoadOptions::Staging::shadow;
    EXPECT_FALSE(refused_load(*storage, shadow).empty());
}

TEST(Refusal, FindsMissingAndTruncatedFilesBeforeAByteChanges) {
    for (const bool truncated : {false, true}) {
        const auto storage = sound_checkpoint();
        if (truncated) {
            auto& bytes = storage->file_bytes("x/__1_0.distcp");
            bytes.resize(bytes.size() / 2);
        } else {
            storage->remove("x/__1_0.distcp");
        }
        const std::vector<Mismatch> found = refused_load(*storage);
        EXPECT_TRUE(names(found, "a", "model.a", "[5,3]", "__1_0.distcp")) << truncated;
    }
}

TEST(Refusal, OfOneRankHoldsOnAll) {
    const auto storage = sound_checkpoint();
    support::on_ranks(2, [&](sim::Communicator& communicator) {
        EngineRun run(communicator, *storage);
        if (communicator.rank() == 1) {
            run.optimizer->param_groups()[0].options.lr = 0.5;
        }
        const std::string before = fingerprint(run);
        // Rank 1 alone knows a parameter that the checkpoint does not have.
        auto model = run.rig.model();
        if (communicator.rank() == 1) {
            auto stranger = std::make_shared<optim::Parameter>(*model[0]);
            stranger->name = "stranger";
            model.push_back(stranger);
        }
        TrainEngine engine(run.rig.device(), communicator, *storage, model, *run.optimizer);
        try {
            engine.load_dcp("x");
            ADD_FAILURE() << "rank " << communicator.rank() << " went on";
        } catch (const CheckpointRejected& error) {
            ASSERT_EQ(error.mismatches().size(), 1U);
            EXPECT_EQ(error.mismatches()[0].rank, 1);
            EXPECT_EQ(error.mismatches()[0].key, "model.stranger");
        }
        EXPECT_EQ(fingerprint(run), before);
    });
}

TEST(SaveRefusal, NamesPlainMomentsOfShardedParametersAndWritesNothing) {
    const auto storage = make_memory_storage();
    support::on_ranks(2, [&](sim::Communicator& communicator) {
        EngineRun run(communicator, *storage, {}, testing::specimen_with({"local_moments"}));
        try {
            run.engine.save_dcp("x");
            ADD_FAILURE() << "rank " << communicator.rank() << " saved";
        } catch (const CheckpointRejected& error) {
            EXPECT_TRUE(names(error.mismatches(), "a", "exp_avg", "[5,3]", "[3,3]"));
            EXPECT_TRUE(names(error.mismatches(), "a", "exp_avg", "[5,3]", "[2,3]"));
        }
    });
    EXPECT_FALSE(storage->exists("x"));
    EXPECT_FALSE(storage->exists("x.incomplete"));
}

TEST(SaveRefusal, LetsPlainMomentsThroughWhereOneRankHoldsAll) {
    const auto storage = make_memory_storage();
    support::on_ranks(1, [&](sim::Communicator& communicator) {
        EngineRun run(communicator, *storage, {}, testing::specimen_with({"local_moments"}));
        EXPECT_NO_THROW(run.engine.save_dcp("x"));
    });
}

TEST(Checks, OffLetTheLossyCheckpointIn) {
    const auto storage = lossy_checkpoint();
    for (const Checks checks : {Checks::torch, Checks::none}) {
        support::on_ranks(2, [&](sim::Communicator& communicator) {
            EngineOptions options;
            options.checks = checks;
            EngineRun run(communicator, *storage, options,
                          testing::specimen_with({"local_moments"}));
            const auto load = [&] { run.engine.load_dcp("x"); };
            if (checks == Checks::none) {
                EXPECT_NO_THROW(load());
                optim::StateDict state = run.optimizer->state_dict();
                // Rank 0 misses its third row: rank 1's two rows came first.
                const auto* moment = state.find("a")->find("exp_avg")->get_if<optim::Tensor>();
                const auto values = optim::to_floats(*moment);
                EXPECT_NE(values[0], 0.0F);
                EXPECT_EQ(values.back() == 0.0F, communicator.rank() == 0);
            } else {
                EXPECT_THROW(load(), CheckpointRejected);
            }
        });
    }
}

}  // namespace
}  // namespace swaplab::harness
