#include "fixture.hpp"
#include "support/storage_wrappers.hpp"

#include "swaplab/sim/world.hpp"

#include <optional>

namespace swaplab::harness {
namespace {

using testing::EngineRun;
using tests::FailingStorage;
using State = std::map<std::string, std::vector<float>>;
using Staging = optim::LoadOptions::Staging;

/// How a load or save ended on one rank.
struct End {
    std::optional<sim::ErrorKind> error;
    std::string text;
    bool torn = false;
    bool changed = false;
};

End attempt(EngineRun& run, const std::function<void()>& work) {
    End end;
    const std::string before = fingerprint(run);
    try {
        work();
    } catch (const sim::Error& error) {
        end.error = error.kind();
        end.text = error.message();
    }
    end.torn = run.optimizer->torn();
    end.changed = fingerprint(run) != before;
    return end;
}

State save_sound(Storage& storage, int ranks, std::int64_t steps) {
    State state;
    support::on_ranks(ranks, [&](sim::Communicator& communicator) {
        EngineRun run(communicator, storage);
        run.train(1, steps);
        run.engine.save_dcp("x");
        State mine = global_state(communicator, run);
        if (communicator.rank() == 0) {
            state = std::move(mine);
        }
    });
    return state;
}

/// Runs `work` on all ranks while storage operation `operation` fails; false when it never came.
bool with_failure(sim::Communicator& communicator, FailingStorage& failing, std::int64_t operation,
                  const std::function<void()>& work) {
    communicator.barrier();
    if (communicator.rank() == 0) {
        failing.fail_at(operation);
    }
    communicator.barrier();
    work();
    communicator.barrier();
    const bool came = failing.count() >= operation;
    communicator.barrier();
    if (communicator.rank() == 0) {
        failing.fail_at(0);
    }
    communicator.barrier();
    return came;
}

/// Loads with every storage operation failing in turn; `judge` looks at how both ranks ended.
void fail_every_load(Staging staging, const std::function<void(const End&)>& judge) {
    const auto storage = make_memory_storage();
    const State sound = save_sound(*storage, 2, 3);
    FailingStorage failing(*storage);
    bool ended_well = false;
    for (std::int64_t operation = 1; !ended_well; ++operation) {
        support::on_ranks(2, [&](sim::Communicator& communicator) {
            EngineRun run(communicator, failing);
            run.train(7, 9);
            LoadRequest request;
            request.staging = staging;
            End end;
            const bool failed = with_failure(communicator, failing, operation, [&] {
                end = attempt(run, [&] { run.engine.load_dcp("x", request); });
            });
            EXPECT_EQ(end.error.has_value(), failed) << "operation " << operation;
            ended_well = !failed;
            if (failed) {
                EXPECT_EQ(end.error, sim::ErrorKind::storage) << "operation " << operation;
                judge(end);
            }
            run.engine.load_dcp("x");
            EXPECT_FALSE(run.optimizer->torn());
            EXPECT_EQ(global_state(communicator, run), sound) << "operation " << operation;
        });
        ASSERT_LT(operation, 1000);
    }
}

TEST(LoadFault, LeavesEveryRankUnchangedOrTorn) {
    int torn = 0;
    fail_every_load(Staging::none, [&](const End& end) {
        EXPECT_TRUE(!end.changed || end.torn) << end.text;
        if (end.torn) {
            ++torn;
            EXPECT_NE(end.text.find("may be partly overwritten"), std::string::npos);
        }
    });
    EXPECT_GT(torn, 2);
    EXPECT_EQ(torn % 2, 0) << "torn on one rank only";
}

TEST(LoadFault, ChangesNothingWithAShadow) {
    fail_every_load(Staging::shadow, [](const End& end) {
        EXPECT_FALSE(end.changed) << end.text;
        EXPECT_FALSE(end.torn) << end.text;
    });
}

TEST(SaveFault, KeepsTheOldCheckpointAndEndsOnAllRanks) {
    const auto storage = make_memory_storage();
    const State old = save_sound(*storage, 2, 3);
    FailingStorage failing(*storage);
    bool ended_well = false;
    for (std::int64_t operation = 1; !ended_well; ++operation) {
        bool published = false;
        support::on_ranks(2, [&](sim::Communicator& communicator) {
            EngineRun run(communicator, failing);
            run.train(1, 4);
            End end;
            ended_well = !with_failure(communicator, failing, operation, [&] {
                end = attempt(run, [&] { run.engine.save_dcp("x"); });
            });
            published = !end.error;
            EXPECT_FALSE(end.changed);
            if (end.error) {
                EXPECT_EQ(end.error, sim::ErrorKind::storage);
            }
        });
        support::on_ranks(2, [&](sim::Communicator& communicator) {
            EngineRun run(communicator, *storage);
            run.engine.load_dcp("x");
            const State found = global_state(communicator, run);
            if (!published && found != old) {
                // The exchange of names had happened: then it is the whole new one.
                EXPECT_EQ(found.at("a.step"), std::vector<float>{4}) << "operation " << operation;
            }
        });
        ASSERT_LT(operation, 1000);
        if (published && !ended_well) {
            (void)save_sound(*storage, 2, 3);
        }
    }
}

/// Rank 1 fails as it enters `phase`.
EngineOptions failing_in(const std::string& phase, int rank) {
    EngineOptions options;
    options.on_phase = [=](std::string_view entered) {
        if (entered == phase && rank == 1) {
            throw sim::DeviceError("phase " + phase);
        }
    };
    return options;
}

TEST(PhaseFault, OfALoadOnOneRankEndsOnAllWithTheSameError) {
    const auto storage = make_memory_storage();
    (void)save_sound(*storage, 3, 3);
    for (const std::string phase : {"plan", "validate", "apply"}) {
        support::on_ranks(3, [&](sim::Communicator& communicator) {
            EngineRun run(communicator, *storage, failing_in(phase, communicator.rank()));
            run.train(7, 7);
            const End end = attempt(run, [&] { run.engine.load_dcp("x"); });
            EXPECT_EQ(end.error, sim::ErrorKind::device) << phase;
            EXPECT_FALSE(end.changed) << phase;
            EXPECT_FALSE(end.torn) << phase;
        });
    }
}

TEST(PhaseFault, OfASaveOnOneRankEndsOnAllWithTheSameError) {
    const auto storage = make_memory_storage();
    for (const std::string phase : {"plan", "validate", "stage", "publish"}) {
        support::on_ranks(3, [&](sim::Communicator& communicator) {
            EngineRun run(communicator, *storage, failing_in(phase, communicator.rank()));
            const End end = attempt(run, [&] { run.engine.save_dcp("y"); });
            EXPECT_EQ(end.error, sim::ErrorKind::device) << phase;
        });
        EXPECT_FALSE(storage->exists("y/.metadata")) << phase;
    }
}

TEST(DifferentDirectories, AreRefusedOnAllRanksBeforeAnythingHappens) {
    const auto storage = make_memory_storage();
    (void)save_sound(*storage, 2, 3);
    for (const bool saves : {true, false}) {
        const auto results = sim::run_ranks({.size = 2}, [&](sim::Communicator& communicator) {
            EngineRun run(communicator, *storage);
            const std::string directory = communicator.rank() == 0 ? "x" : "y";
            saves ? static_cast<void>(run.engine.save_dcp(directory))
                  : run.engine.load_dcp(directory);
        });
        for (const sim::RankResult& result : results) {
            EXPECT_THROW(std::rethrow_exception(result.error), sim::CollectiveMismatch);
        }
        EXPECT_FALSE(storage->exists("y")) << saves;
    }
}

constexpr SaveRequest model_only{true, false};

bool has_torn_parameters(EngineRun& run) {
    try {
        run.engine.save_dcp("probe", model_only);
        return false;
    } catch (const optim::TornState&) {
        return true;
    }
}

/// Fails a read once parameters are being overwritten.
void tear(EngineRun& run, sim::Communicator& communicator, FailingStorage& failing,
          const LoadRequest& request = {}) {
    bool came = true;
    for (std::int64_t operation = 1; came && !has_torn_parameters(run); ++operation) {
        came = with_failure(communicator, failing, operation, [&] {
            EXPECT_THROW(run.engine.load_dcp("x", request), sim::StorageError);
        });
    }
}

TEST(Torn, StateIsNeitherSteppedNorSavedUntilACompleteLoad) {
    const auto storage = make_memory_storage();
    const State sound = save_sound(*storage, 2, 3);
    FailingStorage failing(*storage);
    support::on_ranks(2, [&](sim::Communicator& communicator) {
        EngineRun run(communicator, failing);
        run.train(7, 7);
        tear(run, communicator, failing);
        LoadRequest optimizer_only;
        optimizer_only.model = false;
        for (int i = 0; i < 2; ++i) {
            EXPECT_THROW(run.optimizer->step(), optim::TornState);
            EXPECT_THROW(run.engine.save_dcp("y"), optim::TornState);
            EXPECT_THROW(run.engine.save_dcp("y", model_only), optim::TornState);
            run.engine.load_dcp("x", optimizer_only);  // the parameters are still torn
        }
        run.engine.load_dcp("x");
        EXPECT_EQ(global_state(communicator, run), sound);
        EXPECT_NO_THROW(run.optimizer->step());
        EXPECT_NO_THROW(run.engine.save_dcp("y"));
    });
}

TEST(Torn, ParametersOfAModelOnlyLoadStopTheStepUntilTheyAreLoaded) {
    const auto storage = make_memory_storage();
    const State sound = save_sound(*storage, 2, 3);
    FailingStorage failing(*storage);
    support::on_ranks(2, [&](sim::Communicator& communicator) {
        EngineRun run(communicator, failing);
        run.train(1, 3);
        LoadRequest model_load;
        model_load.optimizer = false;
        tear(run, communicator, failing, model_load);
        LoadRequest optimizer_load;
        optimizer_load.model = false;
        for (int i = 0; i < 2; ++i) {
            EXPECT_TRUE(run.optimizer->torn());
            EXPECT_THROW(run.optimizer->step(), optim::TornState);
            EXPECT_THROW(run.engine.save_dcp("y"), optim::TornState);
            run.engine.load_dcp("x", optimizer_load);  // the parameters are still torn
        }
        run.engine.load_dcp("x", model_load);
        EXPECT_EQ(global_state(communicator, run), sound);
        EXPECT_NO_THROW(run.optimizer->step());
        EXPECT_NO_THROW(run.engine.save_dcp("y"));
    });
}

TEST(Torn, IsForgottenByTheSpecimenThatDoesNotMarkIt) {
    const auto storage = make_memory_storage();
    (void)save_sound(*storage, 2, 3);
    FailingStorage failing(*storage);
    support::on_ranks(2, [&](sim::Communicator& communicator) {
        EngineRun run(communicator, failing, {}, testing::specimen_with({"tear_unmarked"}));
        LoadRequest request;
        request.model = false;
        request.template_kind = optim::Snapshot::live;
        bool changed = false;
        bool came = true;
        for (std::int64_t operation = 1; came; ++operation) {
            came = with_failure(communicator, failing, operation, [&] {
                const End end = attempt(run, [&] { run.engine.load_dcp("x", request); });
                changed = changed || (end.error && end.changed);
                EXPECT_FALSE(end.torn);
            });
        }
        EXPECT_TRUE(changed) << "no operation left the state half overwritten";
    });
}

}  // namespace
}  // namespace swaplab::harness
