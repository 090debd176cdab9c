#include "support/training.hpp"

#include "swaplab/harness/specimen.hpp"
#include "swaplab/sim/world.hpp"

namespace swaplab::harness {
namespace {

using optim::Snapshot;
using optim::StateDict;
using support::ParamSpec;
using support::Trainer;

const std::vector<ParamSpec> specs{{"a", {6, 2}, {optim::Placement::shard(0)}},
                                   {"b", {4}, {optim::Placement::shard(0)}}};

/// A state dict that fails on one rank: when it is listed, or when parameter b is read.
class FailingSource final : public optim::StateDictSource {
  public:
    enum class Where : std::uint8_t { nowhere, entries, read };
    FailingSource(const StateDict& dict, Where where) : StateDictSource(dict), where_(where) {}

    [[nodiscard]] std::vector<optim::SourceEntry> entries(const std::string& fqn) const override {
        fail_if(where_ == Where::entries);
        return StateDictSource::entries(fqn);
    }
    void read(const std::string& fqn, const std::string& key, const optim::Tensor& live, int rank,
              std::uint64_t offset_bytes, std::span<std::byte> out) override {
        fail_if(where_ == Where::read && fqn == "b");
        StateDictSource::read(fqn, key, live, rank, offset_bytes, out);
    }

  private:
    static void fail_if(bool fails) {
        if (fails) {
            throw sim::StorageError("input/output error", {{"operation", "read"}});
        }
    }
    Where where_;
};

/// How a load ended on one rank of two, of which rank 1 meets the failure.
struct End {
    std::string text;
    bool changed = false;
    bool torn = false;
};

/// Calls judge(rank, end) on both ranks.
void fail_a_load(const std::vector<std::string>& defects, FailingSource::Where where,
                 Snapshot template_kind, const std::function<void(int, const End&)>& judge) {
    support::on_ranks(2, [&](sim::Communicator& communicator) {
        Trainer trainer(communicator, specs);
        const auto optimizer =
            make_specimen(trainer.device(), communicator, {trainer.group()}, defects);
        trainer.train(*optimizer, 0, 1);
        const StateDict saved = optimizer->state_dict(Snapshot::owned);
        trainer.train(*optimizer, 1, 1);
        const StateDict before = optimizer->state_dict(Snapshot::owned);
        const bool first = communicator.rank() == 0;
        FailingSource source(saved, first ? FailingSource::Where::nowhere : where);
        optim::LoadOptions options;
        options.template_kind = template_kind;
        End end;
        try {
            optimizer->load(source, options);
            ADD_FAILURE() << "rank " << communicator.rank() << " went on";
        } catch (const sim::StorageError& error) {
            end.text = error.what();
        }
        end.torn = optimizer->torn();
        end.changed = !optim::same_value(optim::to_value(optimizer->state_dict(Snapshot::owned)),
                                         optim::to_value(before));
        judge(communicator.rank(), end);
    });
}

TEST(SpecimenLoad, ThatCannotListItsSourceOnOneRankEndsOnAllWithThatError) {
    fail_a_load({}, FailingSource::Where::entries, Snapshot::live, [](int rank, const End& end) {
        EXPECT_EQ(end.text, rank == 1 ? "input/output error"
                                      : "rank 1, Specimen::load of state dict: check: "
                                        "input/output error");
        EXPECT_FALSE(end.changed);
        EXPECT_FALSE(end.torn);
    });
}

TEST(SpecimenLoad, ThatFailsInACopyChangesNoRank) {
    fail_a_load({}, FailingSource::Where::read, Snapshot::owned, [](int, const End& end) {
        EXPECT_FALSE(end.changed);
        EXPECT_FALSE(end.torn);
    });
}

TEST(SpecimenLoad, ThatFailsInALiveTemplateTearsEveryRankUnlessItIsTheDefect) {
    for (const bool unmarked : {false, true}) {
        const std::vector<std::string> defects =
            unmarked ? std::vector<std::string>{"tear_unmarked"} : std::vector<std::string>{};
        fail_a_load(defects, FailingSource::Where::read, Snapshot::live, [&](int, const End& end) {
            EXPECT_TRUE(end.changed);
            EXPECT_EQ(end.torn, !unmarked);
        });
    }
}

/// From now on the device of rank 1 refuses every `operation`.
void break_rank_1(Trainer& trainer, const std::string& operation) {
    trainer.faults().arm({{.operation = operation, .rank = 1, .for_good = true}});
}

TEST(SpecimenLoad, ThatCannotCastOnOneRankChangesNoRank) {
    support::on_ranks(2, [](sim::Communicator& communicator) {
        Trainer trainer(communicator, specs);
        const auto optimizer = make_specimen(trainer.faulty_device(), communicator,
                                             {trainer.group()}, {"device_cast"});
        const StateDict saved = optimizer->state_dict(Snapshot::owned);
        trainer.train(*optimizer, 0, 1);
        const StateDict before = optimizer->state_dict(Snapshot::owned);
        break_rank_1(trainer, "copy");
        EXPECT_THROW(optimizer->load_state_dict(saved), sim::DeviceError);
        EXPECT_TRUE(optim::same_value(optim::to_value(optimizer->state_dict(Snapshot::owned)),
                                      optim::to_value(before)));
        EXPECT_FALSE(optimizer->torn());
    });
}

TEST(SpecimenLoad, ThatCannotReplaceMomentsOnOneRankTearsEveryRank) {
    support::on_ranks(2, [](sim::Communicator& communicator) {
        Trainer trainer(communicator, specs);
        const auto optimizer = make_specimen(trainer.faulty_device(), communicator,
                                             {trainer.group()}, {"stale_moments"});
        const StateDict saved = optimizer->state_dict(Snapshot::owned);
        break_rank_1(trainer, "allocate_pinned");
        EXPECT_THROW(optimizer->load_state_dict(saved), sim::OutOfDeviceMemory);
        EXPECT_TRUE(optimizer->torn());
    });
}

TEST(SpecimenConstruction, IsEachRanksOwnAsInTheOriginal) {
    const auto results = sim::run_ranks({.size = 2}, [](sim::Communicator& communicator) {
        Trainer trainer(communicator, specs);
        break_rank_1(trainer, "allocate_pinned");
        const auto optimizer =
            make_specimen(trainer.faulty_device(), communicator, {trainer.group()}, {});
        optimizer->load_state_dict(optimizer->state_dict(Snapshot::owned));
    });
    EXPECT_THROW(std::rethrow_exception(results[0].error), sim::RankLost);
    EXPECT_THROW(std::rethrow_exception(results[1].error), sim::OutOfDeviceMemory);
}

}  // namespace
}  // namespace swaplab::harness
