#include "fixture.hpp"

#include <algorithm>

namespace swaplab::harness {
namespace {

using testing::EngineRun;
using State = std::map<std::string, std::vector<float>>;

/// Trains three steps in a world of `ranks`, saves "x", and returns the state then and two steps
/// on.
std::pair<State, State> train_and_save(int ranks, Storage& storage, bool amsgrad = false) {
    std::pair<State, State> states;
    support::on_ranks(ranks, [&](sim::Communicator& communicator) {
        EngineRun run(communicator, storage, {}, testing::make_swap_adamw, amsgrad);
        run.train(1, 3);
        run.engine.save_dcp("x");
        State at_save = global_state(communicator, run);
        run.train(4, 5);
        State later = global_state(communicator, run);
        if (communicator.rank() == 0) {
            states = {std::move(at_save), std::move(later)};
        }
    });
    return states;
}

TEST(Roundtrip, AnyWorldContinuesWhatAnyWorldSaved) {
    for (const bool amsgrad : {false, true}) {
        for (const int saved_by : {1, 2, 3, 4}) {
            const auto storage = make_memory_storage();
            const auto [at_save, later] = train_and_save(saved_by, *storage, amsgrad);
            for (const int loaded_by : {1, 2, 3, 4}) {
                support::on_ranks(loaded_by, [&](sim::Communicator& communicator) {
                    EngineRun run(communicator, *storage, {}, testing::make_swap_adamw, amsgrad);
                    run.engine.load_dcp("x");
                    EXPECT_EQ(global_state(communicator, run), at_save)
                        << saved_by << " -> " << loaded_by;
                    run.train(4, 5);
                    EXPECT_EQ(global_state(communicator, run), later)
                        << saved_by << " -> " << loaded_by;
                });
            }
        }
    }
}

TEST(Roundtrip, WorksForTheSpecimenWithoutDefectUnderBothTemplates) {
    const auto storage = make_memory_storage();
    const auto [at_save, later] = train_and_save(2, *storage);
    for (const auto kind : {optim::Snapshot::owned, optim::Snapshot::live}) {
        support::on_ranks(3, [&](sim::Communicator& communicator) {
            EngineRun run(communicator, *storage, {}, testing::specimen_with({}));
            run.train(7, 8);
            LoadRequest request;
            request.template_kind = kind;
            run.engine.load_dcp("x", request);
            EXPECT_EQ(global_state(communicator, run), at_save);
            run.train(4, 5);
            EXPECT_EQ(global_state(communicator, run), later);
        });
    }
}

TEST(Roundtrip, CostsNoDeviceByteAndOneBlockOfPinnedMemory) {
    const auto storage = make_memory_storage();
    (void)train_and_save(2, *storage);
    for (const std::uint64_t chunk_bytes : {8U, 20U, 1U << 20U}) {
        support::on_ranks(2, [&](sim::Communicator& communicator) {
            EngineOptions options;
            options.chunk_bytes = chunk_bytes;
            EngineRun run(communicator, *storage, options);
            std::uint64_t largest = 0;
            for (const auto& param : run.rig.model()) {
                largest = std::max(largest, param->data.local_bytes());
            }
            const sim::MemoryLedger::Window window(run.rig.device().ledger());
            run.engine.load_dcp("x");
            EXPECT_EQ(window.rise(sim::MemoryKind::device), 0U);
            EXPECT_EQ(window.rise(sim::MemoryKind::pinned), std::min(chunk_bytes, largest));
            EXPECT_EQ(window.kept(sim::MemoryKind::pinned), 0);
            run.engine.save_dcp("y");
            EXPECT_EQ(window.rise(sim::MemoryKind::device), 0U);
        });
    }
}

TEST(Roundtrip, ReadsParametersInAnyBlockSize) {
    const auto storage = make_memory_storage();
    const auto [at_save, later] = train_and_save(3, *storage);
    for (const std::uint64_t chunk_bytes : {1U, 4U, 6U, 12U, 64U}) {
        for (const auto staging :
             {optim::LoadOptions::Staging::none, optim::LoadOptions::Staging::shadow}) {
            support::on_ranks(2, [&](sim::Communicator& communicator) {
                EngineOptions options;
                options.chunk_bytes = chunk_bytes;
                EngineRun run(communicator, *storage, options);
                LoadRequest request;
                request.staging = staging;
                run.engine.load_dcp("x", request);
                EXPECT_EQ(global_state(communicator, run), at_save) << chunk_bytes;
            });
        }
    }
}

TEST(Roundtrip, LeavesNoFindingUnderAnySchedule) {
    for (const auto schedule :
         {sim::Schedule::fifo, sim::Schedule::random, sim::Schedule::latest}) {
        const auto storage = make_memory_storage();
        support::on_ranks(2, [&](sim::Communicator& communicator) {
            sim::SimulatedDeviceOptions device;
            device.schedule = schedule;
            support::Trainer rig(communicator, testing::engine_specs, device);
            optim::SwapAdamW optimizer(rig.device(), communicator, {rig.group({})});
            EngineOptions options;
            options.chunk_bytes = 8;
            TrainEngine engine(rig.device(), communicator, *storage, rig.model(), optimizer,
                               options);
            rig.set_gradients(1);
            optimizer.step();
            engine.save_dcp("x");
            const auto saved = rig.model()[0]->data.to_bytes();
            rig.set_gradients(2);
            optimizer.step();
            engine.load_dcp("x");
            EXPECT_EQ(rig.model()[0]->data.to_bytes(), saved);
            EXPECT_THAT(rig.device().findings(), ::testing::IsEmpty());
        });
    }
}

TEST(Requests, LeaveOutWhatIsNotAskedFor) {
    const auto storage = make_memory_storage();
    const State at_save = train_and_save(2, *storage).first;
    support::on_ranks(2, [&](sim::Communicator& communicator) {
        EngineRun run(communicator, *storage);
        run.train(7, 8);
        const State before = global_state(communicator, run);
        LoadRequest request;
        request.model = false;
        run.engine.load_dcp("x", request);
        State after = global_state(communicator, run);
        EXPECT_EQ(after.at("a"), before.at("a"));
        EXPECT_EQ(after.at("a.exp_avg"), at_save.at("a.exp_avg"));

        EngineRun other(communicator, *storage);
        other.train(7, 8);
        other.optimizer->param_groups()[0].options.lr = 0.5;
        request.model = true;
        request.load_states = false;
        other.engine.load_dcp("x", request);
        after = global_state(communicator, other);
        EXPECT_EQ(after.at("a"), at_save.at("a"));
        EXPECT_EQ(after.at("a.exp_avg"), before.at("a.exp_avg"));
        EXPECT_EQ(other.optimizer->param_groups()[0].options.lr, 0.01);

        request.load_states = true;
        request.load_args = false;
        other.optimizer->param_groups()[0].options.lr = 0.5;
        other.engine.load_dcp("x", request);
        EXPECT_EQ(global_state(communicator, other), at_save);
        EXPECT_EQ(other.optimizer->param_groups()[0].options.lr, 0.5);
    });
}

TEST(Requests, WriteOnlyTheHalfThatIsAskedFor) {
    const auto storage = make_memory_storage();
    support::on_ranks(2, [&](sim::Communicator& communicator) {
        EngineRun run(communicator, *storage);
        SaveRequest request;
        request.optimizer = false;
        run.engine.save_dcp("model", request);
        request = {false, true};
        run.engine.save_dcp("optimizer", request);
    });
    const Checkpoint model(*storage, "model");
    EXPECT_NE(model.metadata().find("model.a"), nullptr);
    EXPECT_EQ(model.metadata().find("optimizer.state.a.exp_avg"), nullptr);
    const Checkpoint optimizer(*storage, "optimizer");
    EXPECT_EQ(optimizer.metadata().find("model.a"), nullptr);
    EXPECT_NE(optimizer.metadata().find("optimizer.state.a.exp_avg"), nullptr);
}

TEST(Phases, ComeInOrder) {
    const auto storage = make_memory_storage();
    support::on_ranks(2, [&](sim::Communicator& communicator) {
        std::vector<std::string> phases;
        EngineOptions options;
        options.on_phase = [&](std::string_view phase) { phases.emplace_back(phase); };
        EngineRun run(communicator, *storage, options);
        run.engine.save_dcp("x");
        EXPECT_THAT(phases, ::testing::ElementsAre("plan", "validate", "stage", "publish"));
        phases.clear();
        run.engine.load_dcp("x");
        EXPECT_THAT(phases, ::testing::ElementsAre("plan", "validate", "apply"));
    });
}

}  // namespace
}  // namespace swaplab::harness
