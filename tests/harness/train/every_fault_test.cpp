/// Every call of the device and the storage fails in turn, under each operation of a training run.

#include "fixture.hpp"
#include "support/storage_wrappers.hpp"

#include "swaplab/optim/adamw.hpp"
#include "swaplab/sim/fault_plan.hpp"

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace swaplab::harness {
namespace {

using sim::FaultAction;
using sim::FaultCount;
using sim::FaultInjector;
using sim::FaultPlan;
using sim::MemoryKind;
using testing::EngineRun;

/// Hands on to `inner` what the faults of one rank leave.
tests::FaultyStorage faulty_storage(Storage& inner, FaultInjector*& faults) {
    return {inner, [&faults](const std::string& operation, const std::string& path) {
                if (faults != nullptr && faults->pass({"storage", operation, path}) != nullptr) {
                    throw StorageError("injected", {{"operation", operation}, {"file", path}});
                }
            }};
}

std::array<std::uint64_t, 3> charged(const sim::Device& device) {
    return {device.ledger().now(MemoryKind::device), device.ledger().now(MemoryKind::pinned),
            device.ledger().now(MemoryKind::host)};
}

std::string text_of(const FaultPlan& plan) {
    if (plan.empty()) {
        return "no fault";
    }
    const sim::Fault& fault = plan.front();
    return fault.seam + " " + fault.operation + " " + std::to_string(fault.ordinal) + " on rank " +
           std::to_string(fault.rank) + (fault.for_good ? " for good" : "") +
           (fault.action == FaultAction::late ? " late" : "");
}

/// What a rank is about to do, and what it does then.
struct Attempt {
    std::function<void(EngineRun&)> prepare = [](EngineRun&) {};
    std::function<void(EngineRun&)> operate;
    testing::MakeOptimizer make = testing::make_swap_adamw;
    /// Whether a failure may leave the state torn; otherwise it must be as it was.
    bool may_tear = false;
    bool saves = false;
};

/// Of one rank.
class Trial {
  public:
    Trial(const FaultPlan& plan, Storage& inner, sim::Communicator& communicator)
        : plan_(plan), storage_(faulty_storage(inner, faults_)), communicator_(communicator) {}

    std::vector<FaultCount> run(const Attempt& attempt) {
        EngineRun run(communicator_, storage_, {}, attempt.make);
        FaultInjector& faults = run.rig.faults();
        attempt.prepare(run);
        const std::string before = fingerprint(run);
        const auto bytes = charged(run.rig.device());
        const bool failed = fails(faults, [&] { attempt.operate(run); });
        EXPECT_EQ(charged(run.rig.device()), bytes) << "leaked";
        judge(run, failed, before, attempt.may_tear);
        for (const sim::Finding& finding : run.rig.device().findings()) {
            EXPECT_TRUE(is_broken_for_good()) << finding.text;
        }
        return faults.counts();
    }

    std::vector<FaultCount> construct() {
        support::Trainer rig(communicator_, testing::engine_specs);
        const auto bytes = charged(rig.device());
        (void)fails(rig.faults(), [&] {
            (void)testing::make_swap_adamw(rig.faulty_device(), communicator_, {rig.group()});
        });
        EXPECT_EQ(charged(rig.device()), bytes) << "leaked";
        EXPECT_THAT(rig.findings(), ::testing::IsEmpty());
        return rig.faults().counts();
    }

  private:
    /// Whether `operate` failed under the plan, as it must where the fault happened.
    bool fails(FaultInjector& faults, const std::function<void()>& operate) {
        faults_ = &faults;
        faults.arm(plan_);
        bool failed = false;
        try {
            operate();
        } catch (const sim::RankLost&) {
            ADD_FAILURE() << "an error of one rank must reach the others";
            throw;
        } catch (const sim::Error&) {
            failed = true;
        }
        EXPECT_TRUE(faults.disarm());
        faults_ = nullptr;
        return failed;
    }

    /// What the operation left on the device cannot be waited for any more.
    [[nodiscard]] bool is_broken_for_good() const {
        return !plan_.empty() && (plan_.front().for_good || is_late());
    }
    [[nodiscard]] bool is_late() const { return plan_.front().action == FaultAction::late; }
    /// The device cannot even be read any more.
    [[nodiscard]] bool is_late_here() const {
        return !plan_.empty() && is_late() && plan_.front().rank == communicator_.rank();
    }

    void judge(EngineRun& run, bool failed, const std::string& before, bool may_tear) {
        const bool torn = run.optimizer->torn();
        EXPECT_TRUE(failed || !torn);
        EXPECT_TRUE(may_tear || !torn);
        if (torn) {
            EXPECT_THROW(run.optimizer->step(), optim::TornState);
        } else if (failed && !is_late_here()) {
            EXPECT_EQ(fingerprint(run), before);
        }
        if (any(torn)) {
            EXPECT_THROW(run.engine.save_dcp("torn"), optim::TornState);
        }
    }

    /// Whether one of the ranks says so.
    bool any(bool mine) {
        std::array<std::int64_t, 1> value{mine ? 1 : 0};
        communicator_.all_reduce(std::span<std::int64_t>(value), sim::ReduceOp::sum);
        return value[0] != 0;
    }

    const FaultPlan& plan_;
    FaultInjector* faults_ = nullptr;
    tests::FaultyStorage storage_;
    sim::Communicator& communicator_;
};

constexpr int ranks = 2;

std::unique_ptr<MemoryStorage> storage_with_checkpoint() {
    auto storage = make_memory_storage();
    support::on_ranks(ranks, [&](sim::Communicator& communicator) {
        EngineRun run(communicator, *storage);
        run.train(1, 3);
        run.engine.save_dcp("x");
    });
    return storage;
}

using RankTrial = std::function<std::vector<FaultCount>(Trial&)>;

std::vector<FaultCount> try_fault(const FaultPlan& plan, Storage& storage, const RankTrial& trial) {
    SCOPED_TRACE(text_of(plan));
    std::vector<FaultCount> all;
    support::on_ranks(ranks, [&](sim::Communicator& communicator) {
        Trial mine(plan, storage, communicator);
        const std::vector<FaultCount> counts = trial(mine);
        all.insert(all.end(), counts.begin(), counts.end());
    });
    return all;
}

/// On storages that hold the checkpoint "x"; returns how many faults there were.
std::size_t try_every_fault(const Attempt& attempt) {
    const RankTrial trial = [&](Trial& mine) { return mine.run(attempt); };
    auto storage = storage_with_checkpoint();
    return sim::for_each_fault([&](const FaultPlan& plan) {
        if (attempt.saves) {
            storage = storage_with_checkpoint();
        }
        return try_fault(plan, *storage, trial);
    });
}

TEST(EveryFault, OfConstructionLeavesNothingBehind) {
    const auto storage = make_memory_storage();
    const std::size_t faults = sim::for_each_fault([&](const FaultPlan& plan) {
        return try_fault(plan, *storage, [](Trial& trial) { return trial.construct(); });
    });
    EXPECT_GT(faults, 10U);
}

TEST(EveryFault, OfAStepLeavesTheStateUnchangedOrTorn) {
    Attempt attempt;
    attempt.prepare = [](EngineRun& run) {
        run.train(1, 4);
        run.rig.set_gradients(5);
    };
    attempt.operate = [](EngineRun& run) { run.optimizer->step(); };
    attempt.may_tear = true;
    EXPECT_GT(try_every_fault(attempt), 10U);
}

TEST(EveryFault, OfASwappedLoadFromMemoryHasNoPlaceToHappen) {
    Attempt attempt;
    attempt.operate = [](EngineRun& run) {
        run.optimizer->load_state_dict(run.optimizer->state_dict(optim::Snapshot::owned));
    };
    EXPECT_EQ(try_every_fault(attempt), 0U) << "moments are in host memory, and stay there";
}

// AdamW, whose moments are on the device.
TEST(EveryFault, OfALoadFromMemoryLeavesTheStateUnchangedOrTorn) {
    std::vector<optim::StateDict> saved(ranks);
    Attempt attempt;
    attempt.make = [](sim::Device& device, sim::Communicator& communicator,
                      std::vector<optim::ParamGroup> groups) -> std::unique_ptr<optim::Optimizer> {
        return std::make_unique<optim::AdamW>(device, communicator, std::move(groups));
    };
    attempt.prepare = [&](EngineRun& run) {
        run.train(1, 3);
        saved.at(static_cast<std::size_t>(run.rig.communicator().rank())) =
            run.optimizer->state_dict(optim::Snapshot::owned);
        run.train(4, 5);
    };
    attempt.operate = [&](EngineRun& run) {
        run.optimizer->load_state_dict(
            saved.at(static_cast<std::size_t>(run.rig.communicator().rank())));
    };
    attempt.may_tear = true;
    EXPECT_GT(try_every_fault(attempt), 10U);
}

TEST(EveryFault, OfASaveChangesNothing) {
    Attempt attempt;
    attempt.prepare = [](EngineRun& run) { run.train(1, 4); };
    attempt.operate = [](EngineRun& run) { run.engine.save_dcp("x"); };
    attempt.saves = true;
    EXPECT_GT(try_every_fault(attempt), 10U);
}

TEST(EveryFault, OfALoadLeavesTheStateUnchangedOrTorn) {
    Attempt attempt;
    attempt.prepare = [](EngineRun& run) { run.train(6, 7); };
    attempt.operate = [](EngineRun& run) { run.engine.load_dcp("x"); };
    attempt.may_tear = true;
    EXPECT_GT(try_every_fault(attempt), 10U);
}

TEST(EveryFault, OfALoadWithAShadowChangesNothingBeforeItReplaces) {
    Attempt attempt;
    attempt.prepare = [](EngineRun& run) { run.train(6, 7); };
    attempt.operate = [](EngineRun& run) {
        LoadRequest request;
        request.staging = optim::LoadOptions::Staging::shadow;
        run.engine.load_dcp("x", request);
    };
    attempt.may_tear = true;
    EXPECT_GT(try_every_fault(attempt), 10U);
}

}  // namespace
}  // namespace swaplab::harness
