/// Ranks as fibers of one thread. A rank stops only where it waits for others in a collective;
/// which of those that can go on does so next is the caller's choice.

#include "world/rank_run.hpp"
#include "world/worlds.hpp"

#include "swaplab/sim/assert.hpp"

#include <chrono>
#include <memory>
#include <optional>
#include <utility>

namespace swaplab::sim {
namespace {

class FiberWorld final : public Hub {
  public:
    FiberWorld(const WorldOptions& options, const RankFunction& program, const ChooseRank& choose)
        : world_(options, *this), choose_(choose) {
        for (int rank = 0; rank < options.size; ++rank) {
            ranks_.push_back({std::make_unique<RankRun>(world_, rank, program)});
        }
    }

    std::vector<RankResult> run_all() {
        for (std::vector<std::size_t> choice = able(); !choice.empty(); choice = able()) {
            Rank& rank = ranks_[choice[choose_(choice)]];
            rank.able = false;
            const bool over = rank.run->resume();
            if (rank.run->wish() == RankRun::Wish::stop) {
                rank.stopped = true;
            } else if (over) {
                end(rank);
            } else if (rank.run->wish() == RankRun::Wish::delay) {
                rank.delayed_until = now_ + rank.run->delay();
            }
        }
        std::vector<RankResult> results;
        for (Rank& rank : ranks_) {
            SWAPLAB_ASSERT(rank.ended, "a rank waits and nobody can go on");
            results.push_back(std::move(rank.run->result()));
        }
        return results;
    }

    bool pause(Wait& /*wait*/) override { return false; }

    bool sleep(Wait& wait, Slot& /*slot*/, std::uint32_t /*seen*/) override {
        Fiber& fiber = ranks_[static_cast<std::size_t>(wait.rank)].run->fiber();
        SWAPLAB_ASSERT(Fiber::current() == &fiber,
                       "a communicator may be used by its own rank only");
        fiber.suspend();
        return !nobody_can_go_on_;
    }

    void wake(int rank, Slot& /*slot*/) override {
        ranks_[static_cast<std::size_t>(rank)].able = true;
    }

  private:
    struct Rank {
        std::unique_ptr<RankRun> run;
        bool able = true;
        bool ended = false;
        bool stopped = false;
        std::optional<std::chrono::milliseconds> delayed_until{};
    };

    void end(Rank& rank) {
        rank.ended = true;
        rank.able = false;
        rank.run->show_end("when no other rank could go on");
    }

    [[nodiscard]] std::vector<std::size_t> able() {
        std::vector<std::size_t> ranks = those_able();
        if (ranks.empty() && end_a_delay()) {
            ranks = those_able();
        }
        while (ranks.empty() && give_up_one()) {
            ranks = those_able();
        }
        if (ranks.empty()) {
            ranks = those([](const Rank& rank) { return !rank.ended; });
            nobody_can_go_on_ = !ranks.empty();
        }
        return ranks;
    }

    [[nodiscard]] std::vector<std::size_t> those_able() const {
        return those([](const Rank& rank) {
            return rank.able && !rank.ended && !rank.stopped && !rank.delayed_until;
        });
    }

    /// Time goes by when nobody else can go on. false: nobody is delayed.
    bool end_a_delay() {
        Rank* next = nullptr;
        for (Rank& rank : ranks_) {
            const bool sooner = next == nullptr || rank.delayed_until < next->delayed_until;
            next = rank.delayed_until && sooner ? &rank : next;
        }
        if (next == nullptr) {
            return false;
        }
        now_ = *next->delayed_until;
        next->delayed_until.reset();
        next->able = true;
        return true;
    }

    /// Ends a stopped rank, which others may wait for. false: there is none.
    bool give_up_one() {
        for (Rank& rank : ranks_) {
            if (rank.stopped && !rank.ended) {
                end(rank);
                return true;
            }
        }
        return false;
    }

    template <class Condition>
    [[nodiscard]] std::vector<std::size_t> those(Condition condition) const {
        std::vector<std::size_t> ranks;
        for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
            if (condition(ranks_[rank])) {
                ranks.push_back(rank);
            }
        }
        return ranks;
    }

    WorldState world_;
    std::vector<Rank> ranks_;
    const ChooseRank& choose_;
    bool nobody_can_go_on_ = false;
    std::chrono::milliseconds now_{0};  ///< of delays
};

}  // namespace

std::vector<RankResult> run_fibers(const WorldOptions& options, const RankFunction& program,
                                   const ChooseRank& choose) {
    return FiberWorld(options, program, choose).run_all();
}

}  // namespace swaplab::sim
