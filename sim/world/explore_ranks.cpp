#include "swaplab/sim/explore_ranks.hpp"

#include "base/choice_tree.hpp"
#include "world/worlds.hpp"

#include "swaplab/sim/random.hpp"

#include <algorithm>
#include <exception>
#include <numeric>
#include <utility>

namespace swaplab::sim {
namespace {

/// One run after the other, each with choices of its own.
class Searcher {
  public:
    virtual ~Searcher() = default;
    virtual void begin_run(int ranks) = 0;
    /// Which of the ranks that can go on does so.
    virtual std::size_t choose(const std::vector<std::size_t>& able) = 0;
    /// false: all orders have been seen.
    virtual bool next() = 0;
};

class Fifo final : public Searcher {
    void begin_run(int /*ranks*/) override {}
    std::size_t choose(const std::vector<std::size_t>& /*able*/) override { return 0; }
    bool next() override { return false; }
};

class Random final : public Searcher {
  public:
    explicit Random(std::uint64_t seed) : rng_(seed) {}
    void begin_run(int /*ranks*/) override {}
    std::size_t choose(const std::vector<std::size_t>& able) override {
        return rng_.below(able.size());
    }
    bool next() override { return true; }

  private:
    Rng rng_;
};

/// Burckhardt, Kothari, Musuvathi, Nagarakatte: A randomized scheduler with probabilistic
/// guarantees of finding bugs, 2010.
class Pct final : public Searcher {
  public:
    explicit Pct(std::uint64_t seed) : rng_(seed) {}

    void begin_run(int ranks) override {
        steps_max_ = std::max(steps_max_, step_);
        step_ = 0;
        priorities_.resize(static_cast<std::size_t>(ranks));
        std::iota(priorities_.begin(), priorities_.end(), changes);
        for (std::size_t i = priorities_.size(); i > 1; --i) {
            std::swap(priorities_[i - 1], priorities_[rng_.below(i)]);
        }
        for (std::uint64_t& at : changes_at_) {
            at = rng_.below(std::max<std::uint64_t>(steps_max_, 8));
        }
    }

    std::size_t choose(const std::vector<std::size_t>& able) override {
        const auto lower = [&](std::size_t a, std::size_t b) {
            return priorities_[a] < priorities_[b];
        };
        auto best = std::max_element(able.begin(), able.end(), lower);
        for (int change = 0; change < changes; ++change) {
            if (changes_at_[static_cast<std::size_t>(change)] == step_) {
                priorities_[*best] = change;  // below all the others
                best = std::max_element(able.begin(), able.end(), lower);
            }
        }
        ++step_;
        return static_cast<std::size_t>(best - able.begin());
    }

    bool next() override { return true; }

  private:
    static constexpr int changes = 2;

    Rng rng_;
    std::vector<int> priorities_;  ///< by rank
    std::uint64_t changes_at_[changes] = {};
    std::uint64_t step_ = 0;
    std::uint64_t steps_max_ = 0;
};

class Exhaustive final : public Searcher {
  public:
    void begin_run(int /*ranks*/) override {}
    std::size_t choose(const std::vector<std::size_t>& able) override {
        return tree_.choose(able.size());
    }
    bool next() override { return tree_.next(); }

  private:
    ChoiceTree tree_;
};

std::unique_ptr<Searcher> make_searcher(Search search, std::uint64_t seed) {
    switch (search) {
        case Search::fifo:
            return std::make_unique<Fifo>();
        case Search::random:
            return std::make_unique<Random>(seed);
        case Search::pct:
            return std::make_unique<Pct>(seed);
        case Search::exhaustive:
            break;
    }
    return std::make_unique<Exhaustive>();
}

bool failed(const std::vector<RankResult>& results) {
    return std::any_of(results.begin(), results.end(), [](const RankResult& result) {
        return result.end != RankResult::End::finished;
    });
}

}  // namespace

RankExploration explore_ranks(const WorldOptions& options, const std::function<RankProgram()>& make,
                              Search search, std::uint64_t runs_max) {
    check_options(options);
    const std::unique_ptr<Searcher> searcher = make_searcher(search, options.seed);
    RankExploration exploration;
    while (exploration.runs < runs_max) {
        const RankProgram program = make();
        std::vector<int> order;
        std::exception_ptr diverged;  // kept until all fibers have ended
        searcher->begin_run(options.size);
        auto results = run_fibers(
            options,
            [&](Communicator& world) {
                program(world);
                return std::string();
            },
            [&](const std::vector<std::size_t>& able) {
                std::size_t chosen = 0;
                try {
                    chosen = diverged ? 0 : searcher->choose(able);
                } catch (const DeviceError&) {
                    diverged = std::current_exception();
                }
                order.push_back(static_cast<int>(able[chosen]));
                return chosen;
            });
        if (diverged) {
            std::rethrow_exception(diverged);
        }
        ++exploration.runs;
        if (failed(results)) {
            exploration.failure = std::move(results);
            exploration.order = std::move(order);
            return exploration;
        }
        if (!searcher->next()) {
            exploration.complete = search == Search::exhaustive;
            return exploration;
        }
    }
    return exploration;
}

}  // namespace swaplab::sim
