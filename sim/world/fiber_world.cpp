/// Ranks as fibers of one thread. A rank stops only where it waits for others in a collective;
/// which of those that can go on does so next is a seeded choice.

#include "simulated/host_trap.hpp"
#include "world/fiber.hpp"

#include "swaplab/sim/assert.hpp"
#include "swaplab/sim/error.hpp"
#include "swaplab/sim/mutant.hpp"
#include "swaplab/sim/random.hpp"
#include "swaplab/sim/world.hpp"

#include <fmt/format.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace swaplab::sim {
namespace {

constexpr int size_max = 64;

class FiberWorld;

class FiberCommunicator final : public Communicator {
  public:
    FiberCommunicator(FiberWorld& world, int rank) noexcept : world_(world), rank_(rank) {}
    [[nodiscard]] int rank() const noexcept override { return rank_; }
    [[nodiscard]] int size() const noexcept override;

  protected:
    std::vector<Bytes> exchange(const CollectiveCall& call,
                                std::span<const std::byte> mine) override;

  private:
    FiberWorld& world_;
    int rank_;
};

/// One rank's part of the collective that it waits in.
struct Contribution {
    std::uint64_t sequence = 0;
    CollectiveCall call;
    std::span<const std::byte> mine;
};

std::string describe(const Contribution& part) {
    std::string text = fmt::format("{} {}", part.call.operation, part.sequence);
    if (part.call.count != 0) {
        text += fmt::format(" of {} {}", part.call.count, part.call.dtype);
    }
    if (part.call.root >= 0) {
        text += fmt::format(" from root {}", part.call.root);
    }
    return fmt::format("{} ({})", text, format_site(part.call.site));
}

bool same_call(const Contribution& a, const Contribution& b) {
    return a.sequence == b.sequence && a.call.operation == b.call.operation &&
           a.call.dtype == b.call.dtype && a.call.count == b.call.count &&
           a.call.root == b.call.root;
}

std::string text_of(const std::exception_ptr& error) {
    try {
        std::rethrow_exception(error);
    } catch (const std::exception& exception) {
        return exception.what();
    } catch (...) {
        return "something that is no std::exception";
    }
}

class FiberWorld {
  public:
    FiberWorld(const WorldOptions& options, const RankProgram& program)
        : ranks_(static_cast<std::size_t>(options.size)), rng_(options.seed) {
        for (int rank = 0; rank < options.size; ++rank) {
            at(rank).fiber =
                std::make_unique<Fiber>([this, rank, &program] { run(rank, program); });
        }
    }

    std::vector<RankResult> run_all() {
        while (const std::optional<int> rank = choose()) {
            Rank& chosen = at(*rank);
            chosen.runnable = false;
            chosen.fiber->resume();
            if (chosen.fiber->abandoned()) {
                end(*rank, RankResult::End::trapped, report_touch());
            }
        }
        std::vector<RankResult> results;
        for (Rank& rank : ranks_) {
            SWAPLAB_ASSERT(rank.result.has_value(), "a rank waits and nobody can go on");
            results.push_back(*rank.result);
        }
        return results;
    }

    std::vector<Bytes> exchange(int rank, const CollectiveCall& call,
                                std::span<const std::byte> mine) {
        Rank& me = at(rank);
        SWAPLAB_ASSERT(Fiber::current() == me.fiber.get(),
                       "a communicator may be used by its own rank only");
        throw_if_broken();
        const Contribution part{++me.sequence, call, mine};
        if (const int lost = first_ended(); lost >= 0) {
            break_by_loss(lost, part);
            throw_if_broken();
        }
        me.waiting = part;
        if (everybody_waits()) {
            complete();
        }
        me.fiber->suspend();
        throw_if_broken();
        return std::move(me.received);
    }

    [[nodiscard]] int size() const noexcept { return static_cast<int>(ranks_.size()); }

  private:
    struct Rank {
        std::unique_ptr<Fiber> fiber;
        bool runnable = true;
        std::uint64_t sequence = 0;
        std::optional<Contribution> waiting;
        std::vector<Bytes> received;
        std::optional<RankResult> result;
    };

    Rank& at(int rank) { return ranks_[static_cast<std::size_t>(rank)]; }

    std::optional<int> choose() {
        std::vector<int> runnable;
        for (int rank = 0; rank < size(); ++rank) {
            if (at(rank).runnable) {
                runnable.push_back(rank);
            }
        }
        if (runnable.empty()) {
            return std::nullopt;
        }
        return runnable[rng_.below(runnable.size())];
    }

    void run(int rank, const RankProgram& program) {
        FiberCommunicator communicator(*this, rank);
        try {
            program(communicator);
            end(rank, RankResult::End::finished, nullptr);
        } catch (...) {
            end(rank, RankResult::End::threw, std::current_exception());
        }
    }

    void end(int rank, RankResult::End how, std::exception_ptr error) {
        at(rank).result = RankResult{how, std::move(error)};
        at(rank).waiting.reset();
        for (const Rank& other : ranks_) {
            if (other.waiting && !broken_) {
                break_by_loss(rank, *other.waiting);
            }
        }
    }

    [[nodiscard]] int first_ended() {
        for (int rank = 0; rank < size(); ++rank) {
            if (at(rank).result) {
                return rank;
            }
        }
        return -1;
    }

    [[nodiscard]] bool everybody_waits() const {
        for (const Rank& rank : ranks_) {
            if (!rank.waiting) {
                return false;
            }
        }
        return true;
    }

    void complete() {
        for (const Rank& rank : ranks_) {
            if (!same_call(*rank.waiting, *ranks_.front().waiting) &&
                !SWAPLAB_MUTANT("world.agreement_unchecked")) {
                return break_by_mismatch();
            }
        }
        for (Rank& to : ranks_) {
            to.received.clear();
            for (const Rank& from : ranks_) {
                to.received.emplace_back(from.waiting->mine.begin(), from.waiting->mine.end());
            }
        }
        release();
    }

    void release() {
        for (Rank& rank : ranks_) {
            if (rank.waiting) {
                rank.waiting.reset();
                rank.runnable = true;
            }
        }
    }

    void break_by_mismatch();
    void break_by_loss(int lost, const Contribution& part);
    void throw_if_broken() const {
        if (broken_) {
            std::rethrow_exception(broken_);
        }
    }

    std::vector<Rank> ranks_;
    Rng rng_;
    std::exception_ptr broken_;
};

void FiberWorld::break_by_mismatch() {
    std::string text = "ranks called different collectives";
    ErrorFields fields;
    for (int rank = 0; rank < size(); ++rank) {
        const Contribution& part = *at(rank).waiting;
        text += fmt::format("{} rank {}: {}", rank == 0 ? ":" : ";", rank, describe(part));
        fields.push_back({"rank", fmt::format("rank {}", rank)});
        fields.push_back({"operation", std::string(part.call.operation)});
        fields.push_back({"sequence", std::to_string(part.sequence)});
        fields.push_back({"dtype", std::string(part.call.dtype)});
        fields.push_back({"count", std::to_string(part.call.count)});
        fields.push_back({"root", std::to_string(part.call.root)});
        fields.push_back({"site", format_site(part.call.site)});
    }
    broken_ = std::make_exception_ptr(CollectiveMismatch(text, std::move(fields)));
    release();
}

void FiberWorld::break_by_loss(int lost, const Contribution& part) {
    const RankResult& result = *at(lost).result;
    std::string how;
    switch (result.end) {
        case RankResult::End::finished:
            how = "returned";
            break;
        case RankResult::End::threw:
            how = "threw";
            break;
        case RankResult::End::trapped:
            how = "trapped";
            break;
    }
    const std::string reason = result.error ? text_of(result.error) : "";
    broken_ = std::make_exception_ptr(
        RankLost(fmt::format("rank {} of {} lost: {} before {}{}{}", lost, size(), how,
                             describe(part), reason.empty() ? "" : ": ", reason),
                 {{"rank", fmt::format("rank {}", lost)},
                  {"end", how},
                  {"reason", reason},
                  {"operation", std::string(part.call.operation)},
                  {"sequence", std::to_string(part.sequence)},
                  {"site", format_site(part.call.site)}}));
    if (!SWAPLAB_MUTANT("world.waiters_stay")) {
        release();
    }
}

int FiberCommunicator::size() const noexcept {
    return world_.size();
}

std::vector<Bytes> FiberCommunicator::exchange(const CollectiveCall& call,
                                               std::span<const std::byte> mine) {
    return world_.exchange(rank_, call, mine);
}

bool merely_lost_another(const std::exception_ptr& error) {
    try {
        std::rethrow_exception(error);
    } catch (const RankLost&) {
        return true;
    } catch (...) {
        return false;
    }
}

}  // namespace

std::vector<RankResult> run_ranks(const WorldOptions& options, const RankProgram& program) {
    if (options.size < 1 || options.size > size_max) {
        throw ArgumentError(
            fmt::format("a world of {} ranks; it can have 1 to {}", options.size, size_max),
            {{"parameter", "size"},
             {"expected", fmt::format("1 to {}", size_max)},
             {"found", std::to_string(options.size)}});
    }
    return FiberWorld(options, program).run_all();
}

void rethrow_first(const std::vector<RankResult>& results) {
    std::exception_ptr collateral;
    for (const RankResult& result : results) {
        if (!result.error) {
            continue;
        }
        if (!merely_lost_another(result.error)) {
            std::rethrow_exception(result.error);
        }
        if (!collateral) {
            collateral = result.error;
        }
    }
    if (collateral) {
        std::rethrow_exception(collateral);
    }
}

}  // namespace swaplab::sim
