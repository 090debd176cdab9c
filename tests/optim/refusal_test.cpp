#include "swaplab/optim/refusal.hpp"

#include "swaplab/sim/world.hpp"

namespace swaplab::optim {
namespace {

TEST(RefuseTogether, GivesEveryRankTheMismatchesOfAllInRankOrder) {
    sim::rethrow_first(sim::run_ranks({3, 1}, [](sim::Communicator& communicator) {
        std::vector<Mismatch> mine;
        if (communicator.rank() != 1) {
            mine.push_back(
                {communicator.rank(), "a", "exp_avg", "[12,2]", "[6,2]", "lost", {0, 2}});
        }
        try {
            refuse_together(communicator, "x", mine);
            ADD_FAILURE() << "rank " << communicator.rank() << " went on";
        } catch (const CheckpointRejected& error) {
            const Mismatch first{0, "a", "exp_avg", "[12,2]", "[6,2]", "lost", {0, 2}};
            Mismatch last = first;
            last.rank = 2;
            EXPECT_EQ(error.mismatches(), (std::vector<Mismatch>{first, last}));
        }
    }));
}

TEST(RefuseTogether, ReturnsWhenNobodyFoundAnything) {
    sim::rethrow_first(sim::run_ranks({2, 1}, [](sim::Communicator& communicator) {
        EXPECT_NO_THROW(refuse_together(communicator, "x", {}));
    }));
}

}  // namespace
}  // namespace swaplab::optim
