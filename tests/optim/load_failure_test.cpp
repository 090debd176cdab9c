#include "support/training.hpp"

#include "swaplab/optim/adamw.hpp"
#include "swaplab/optim/swap_adamw.hpp"
#include "swaplab/sim/error.hpp"

namespace swaplab::optim {
namespace {

using sim::MemoryKind;
using support::everything;
using support::on_ranks;
using support::ParamSpec;
using support::Trainer;
using ::testing::IsEmpty;
using Staging = LoadOptions::Staging;

const std::vector<ParamSpec> model{{"a", {6, 2}, {Placement::shard(0)}},
                                   {"b", {4}, {Placement::shard(0)}}};

/// A state dict whose `fail_at`-th read of a moment (or of a step) fails like a bad disk.
class FailingSource : public StateDictSource {
  public:
    FailingSource(const StateDict& dict, std::string key, int fail_at)
        : StateDictSource(dict), key_(std::move(key)), fail_at_(fail_at) {}

    void read(const std::string& fqn, const std::string& key, const Tensor& live, int rank,
              std::uint64_t offset_bytes, std::span<std::byte> out) override {
        if (key == key_ && --fail_at_ == 0) {
            throw sim::StorageError("cannot read " + fqn + "." + key,
                                    {{"operation", "read"}, {"key", key}});
        }
        StateDictSource::read(fqn, key, live, rank, offset_bytes, out);
    }

  private:
    std::string key_;
    int fail_at_;
};

/// A state dict that cannot even be listed, like a checkpoint on a bad disk.
class UnlistableSource : public StateDictSource {
  public:
    UnlistableSource(const StateDict& dict, bool fails) : StateDictSource(dict), fails_(fails) {}

    [[nodiscard]] std::vector<SourceEntry> entries(const std::string& fqn) const override {
        if (fails_) {
            throw sim::StorageError("cannot read " + fqn, {{"operation", "read"}});
        }
        return StateDictSource::entries(fqn);
    }

  private:
    bool fails_;
};

/// What one rank saw of a load that fails on rank 1 of 2.
struct Outcome {
    std::string error;
    bool same_as_before = false;
    bool torn = false;
    std::uint64_t shadow_bytes = 0;
};

template <class Optim>
void fail_a_load(Staging staging, const std::string& key, int fail_at,
                 const std::function<void(Trainer&, Optim&, const StateDict&, Outcome)>& then) {
    on_ranks(2, [&](sim::Communicator& communicator) {
        Trainer trainer(communicator, model);
        {
            Optim optimizer(trainer.device(), communicator, {trainer.group()});
            trainer.train(optimizer, 0, 1);
            const StateDict saved = optimizer.state_dict();
            trainer.train(optimizer, 1, 1);
            const Value before = everything(trainer, optimizer);
            FailingSource source(saved, key, communicator.rank() == 1 ? fail_at : 0);
            LoadOptions options;
            options.staging = staging;
            Outcome outcome;
            const sim::MemoryLedger::Window window(trainer.device().ledger());
            try {
                optimizer.load(source, options);
            } catch (const sim::StorageError& error) {
                outcome.error = error.what();
            }
            outcome.shadow_bytes = window.rise(MemoryKind::host);
            outcome.torn = optimizer.torn();
            outcome.same_as_before =
                !outcome.torn && same_value(everything(trainer, optimizer), before);
            then(trainer, optimizer, saved, outcome);
        }
        EXPECT_THAT(trainer.findings(), IsEmpty());
    });
}

template <class Optim>
void expect_torn_until_complete() {
    fail_a_load<Optim>(
        Staging::none, "exp_avg_sq", 2,
        [](Trainer& trainer, Optim& optimizer, const StateDict& saved, const Outcome& outcome) {
            EXPECT_THAT(outcome.error, ::testing::HasSubstr("cannot read b.exp_avg_sq"));
            EXPECT_TRUE(outcome.torn);
            trainer.set_gradients(5);
            const Dict parameters = trainer.parameters();
            EXPECT_THROW(optimizer.step(), TornState);
            EXPECT_THROW(static_cast<void>(optimizer.state_dict()), TornState);
            EXPECT_THROW(static_cast<void>(optimizer.state_dict(Snapshot::live)), TornState);
            EXPECT_TRUE(same_value(trainer.parameters(), parameters));
            StateDictSource source(saved);
            LoadOptions args_only;
            args_only.load_states = false;
            optimizer.load(source, args_only);
            EXPECT_TRUE(optimizer.torn());
            optimizer.load(source);
            EXPECT_FALSE(optimizer.torn());
            EXPECT_TRUE(same_value(to_value(optimizer.state_dict()), to_value(saved)));
            optimizer.step();
        });
}

TEST(FailedLoad, InTheCheckOfOneRankEndsOnAllWithTheSameError) {
    on_ranks(2, [&](sim::Communicator& communicator) {
        Trainer trainer(communicator, model);
        SwapAdamW optimizer(trainer.device(), communicator, {trainer.group()});
        trainer.train(optimizer, 0, 1);
        const Value before = everything(trainer, optimizer);
        const StateDict saved = optimizer.state_dict();
        UnlistableSource source(saved, communicator.rank() == 1);
        EXPECT_THROW(optimizer.load(source), sim::StorageError);
        EXPECT_TRUE(same_value(everything(trainer, optimizer), before));
    });
}

TEST(FailedLoad, TearsAllRanksUntilACompleteLoad) {
    expect_torn_until_complete<SwapAdamW>();
    expect_torn_until_complete<AdamW>();
}

TEST(FailedLoad, ShadowKeepsTheOldStateOnAllRanks) {
    const auto expect_old = [](Trainer& trainer, Optimizer& optimizer, const StateDict&,
                               const Outcome& outcome) {
        EXPECT_THAT(outcome.error, ::testing::HasSubstr("cannot read b.exp_avg_sq"));
        EXPECT_FALSE(outcome.torn);
        EXPECT_TRUE(outcome.same_as_before);
        EXPECT_EQ(outcome.shadow_bytes, 2U * (6 + 2) * 4);
        trainer.train(optimizer, 2, 1);
    };
    fail_a_load<SwapAdamW>(Staging::shadow, "exp_avg_sq", 2, expect_old);
    fail_a_load<AdamW>(Staging::shadow, "exp_avg_sq", 2, expect_old);
}

TEST(FailedLoad, ABadStepReadChangesNothingWithAnyStaging) {
    for (const Staging staging : {Staging::none, Staging::shadow}) {
        fail_a_load<SwapAdamW>(
            staging, "step", 1, [](Trainer&, SwapAdamW&, const StateDict&, const Outcome& outcome) {
                EXPECT_THAT(outcome.error, ::testing::HasSubstr("cannot read a.step"));
                EXPECT_TRUE(outcome.same_as_before);
            });
    }
}

TEST(ShadowedLoad, HoldsOneCopyOfTheMomentsAndGivesItBack) {
    on_ranks(2, [](sim::Communicator& communicator) {
        Trainer trainer(communicator, model);
        SwapAdamW swap(trainer.device(), communicator, {trainer.group()}, {3, 2});
        trainer.train(swap, 0, 1);
        const StateDict saved = swap.state_dict();
        trainer.train(swap, 1, 1);
        LoadOptions options;
        options.staging = Staging::shadow;
        StateDictSource source(saved);
        const sim::MemoryLedger::Window window(trainer.device().ledger());
        swap.load(source, options);
        EXPECT_EQ(window.rise(MemoryKind::host), 2U * (6 + 2) * 4);
        EXPECT_EQ(window.kept(MemoryKind::host), 0);
        EXPECT_EQ(window.rise(MemoryKind::device), 0U);
        EXPECT_TRUE(same_value(to_value(swap.state_dict()), to_value(saved)));
    });
}

TEST(TornState, NamesTheOperationAndTheRank) {
    on_ranks(2, [](sim::Communicator& communicator) {
        Trainer trainer(communicator, model);
        SwapAdamW swap(trainer.device(), communicator, {trainer.group()});
        swap.set_parameters_torn(true);
        try {
            swap.step();
            FAIL() << "stepped";
        } catch (const TornState& error) {
            const std::string rank = "rank " + std::to_string(communicator.rank());
            EXPECT_EQ(error.fields(), (sim::ErrorFields{{"operation", "step"},
                                                        {"rank", rank},
                                                        {"expected", "complete parameters"},
                                                        {"found", "half overwritten"}}));
        }
        EXPECT_NO_THROW(static_cast<void>(swap.state_dict()));
        swap.set_parameters_torn(false);
        EXPECT_NO_THROW(swap.step());
    });
}

TEST(AddedGroup, FailureOnOneRankAddsItOnNone) {
    on_ranks(2, [](sim::Communicator& communicator) {
        Trainer trainer(communicator, {{"a", {4}, {}}, {"b", {4}, {}}});
        SwapAdamW swap(trainer.faulty_device(), communicator, {trainer.group({}, {"a"})});
        trainer.faults().arm({{.operation = "allocate_pinned", .rank = 1}});
        EXPECT_THROW(swap.add_param_group(trainer.group({}, {"b"})), sim::OutOfDeviceMemory);
        EXPECT_EQ(swap.param_groups().size(), 1U);
        EXPECT_EQ(swap.bucket_count(), 1);
        EXPECT_TRUE(trainer.faults().disarm());
        swap.add_param_group(trainer.group({}, {"b"}));
        EXPECT_EQ(swap.bucket_count(), 2);
        trainer.train(swap, 0, 1);
    });
}

}  // namespace
}  // namespace swaplab::optim
