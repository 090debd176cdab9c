#include "swaplab/optim/refusal.hpp"

#include "swaplab/sim/world.hpp"

namespace swaplab::optim {
namespace {

TEST(RefuseTogether, GivesEveryRankTheMismatchesOfAllInRankOrder) {
    sim::rethrow_first(sim::run_ranks({.size = 3}, [](sim::Communicator& communicator) {
        std::vector<Mismatch> mine;
        if (communicator.rank() != 1) {
            mine.push_back(
                {communicator.rank(), "a", "exp_avg", "[12,2]", "[6,2]", "lost", {0, 2}});
        }
        try {
            refuse_together(communicator, "load", "x", mine);
            ADD_FAILURE() << "rank " << communicator.rank() << " went on";
        } catch (const CheckpointRejected& error) {
            const Mismatch first{0, "a", "exp_avg", "[12,2]", "[6,2]", "lost", {0, 2}};
            Mismatch last = first;
            last.rank = 2;
            EXPECT_EQ(error.mismatches(), (std::vector<Mismatch>{first, last}));
        }
    }));
}

TEST(RefuseTogether, RefusesDifferentOperationsAndSubjectsOnAllRanks) {
    const auto refuse = [](const std::string& operation, const std::string& subject) {
        return [=](sim::Communicator& communicator) {
            const bool first = communicator.rank() == 0;
            refuse_together(communicator, first ? "SwapAdamW::load" : operation,
                            first ? "a" : subject, {});
        };
    };
    for (const auto& program : {refuse("AdamW::load", "a"), refuse("SwapAdamW::load", "b")}) {
        for (const sim::RankResult& result : sim::run_ranks({.size = 2}, program)) {
            EXPECT_THROW(std::rethrow_exception(result.error), sim::CollectiveMismatch);
        }
    }
}

TEST(RefuseTogether, ReturnsWhenNobodyFoundAnything) {
    sim::rethrow_first(sim::run_ranks({.size = 2}, [](sim::Communicator& communicator) {
        EXPECT_NO_THROW(refuse_together(communicator, "load", "x", {}));
    }));
}

}  // namespace
}  // namespace swaplab::optim
