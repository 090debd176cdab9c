/// Worlds of ranks: how fast processes meet, how much they move, how soon they start and get away.

#include "bench_seconds.hpp"

#include "swaplab/sim/error.hpp"
#include "swaplab/sim/world.hpp"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstring>
#include <string>
#include <sys/mman.h>
#include <vector>

namespace swaplab::bench {
namespace {

using sim::WorldKind;
using Clock = std::chrono::steady_clock;

double quantile(std::vector<double> values, double share) {
    const auto index = static_cast<std::ptrdiff_t>(share * static_cast<double>(values.size() - 1));
    std::nth_element(values.begin(), values.begin() + index, values.end());
    return values[static_cast<std::size_t>(index)];
}

/// Runs `measure` on every rank; what rank 0 returns.
double measure_on_rank_0(WorldKind kind, int ranks,
                         const std::function<double(sim::Communicator&)>& measure) {
    const auto results = sim::run_rank_functions(
        {.world = kind, .size = ranks},
        [&](sim::Communicator& world) { return std::to_string(measure(world)); });
    sim::rethrow_first(results);
    return std::stod(results.front().value);
}

double median_barrier_us(sim::Communicator& world) {
    std::vector<double> times;
    for (int round = 0; round < 10'000; ++round) {
        times.push_back(seconds_of([&] { world.barrier(); }) * 1e6);
    }
    return quantile(std::move(times), 0.5);
}

void barrier(benchmark::State& state) {
    const auto kind = static_cast<WorldKind>(state.range(0));
    const auto ranks = static_cast<int>(state.range(1));
    for (auto _ : state) {
        const double us = measure_on_rank_0(kind, ranks, median_barrier_us);
        state.SetIterationTime(us * 1e-6);
        state.counters["median_us"] = us;
    }
    state.SetLabel(std::string(sim::name_of(kind)));
}
BENCHMARK(barrier)->ArgsProduct({{0, 1, 2}, {2, 4, 8}})->UseManualTime()->Iterations(3);

/// How long the same ranks take together to copy as much as all_gather hands to each, against
/// all_gather.
double all_gather_over_copy(sim::Communicator& world) {
    constexpr std::size_t bytes = std::size_t{64} << 20U;
    const auto ranks = static_cast<std::size_t>(world.size());
    const sim::Bytes mine(bytes, static_cast<std::byte>(world.rank() + 1));
    sim::Bytes all(bytes * ranks);
    double copy_s = 0;
    double gather_s = 0;
    for (int round = 0; round < 3; ++round) {
        world.barrier();
        copy_s += seconds_of([&] {
            for (std::size_t rank = 0; rank < ranks; ++rank) {
                std::memcpy(all.data() + rank * bytes, mine.data(), bytes);
            }
            world.barrier();
        });
        gather_s += seconds_of([&] { world.all_gather_into(mine, all); });
    }
    return copy_s / gather_s;
}

void all_gather_of_64_mib(benchmark::State& state) {
    for (auto _ : state) {
        double ratio = 0;
        state.SetIterationTime(seconds_of([&] {
            ratio = measure_on_rank_0(WorldKind::process, static_cast<int>(state.range(0)),
                                      all_gather_over_copy);
        }));
        state.counters["copy/all_gather"] = ratio;
    }
}
BENCHMARK(all_gather_of_64_mib)->Arg(2)->Arg(4)->UseManualTime()->Iterations(1);

/// From the call of run_ranks to its return; the program does nothing.
void start_and_end(benchmark::State& state) {
    const auto kind = static_cast<WorldKind>(state.range(0));
    std::vector<double> times;
    for (auto _ : state) {
        const double seconds = seconds_of([&] {
            sim::rethrow_first(
                sim::run_ranks({.world = kind, .size = 4}, [](sim::Communicator&) {}));
        });
        state.SetIterationTime(seconds);
        times.push_back(seconds * 1e6);
    }
    state.counters["median_us"] = quantile(times, 0.5);
    state.SetLabel(std::string(sim::name_of(kind)));
}
BENCHMARK(start_and_end)->DenseRange(0, 2)->UseManualTime()->Iterations(100);

/// The time of a kill, seen by all processes.
class SharedClock {
  public:
    SharedClock()
        : memory_(::mmap(nullptr, sizeof(std::atomic<std::int64_t>), PROT_READ | PROT_WRITE,
                         MAP_SHARED | MAP_ANONYMOUS, -1, 0)) {}
    ~SharedClock() { ::munmap(memory_, sizeof(std::atomic<std::int64_t>)); }
    SharedClock(const SharedClock&) = delete;
    SharedClock& operator=(const SharedClock&) = delete;
    std::atomic<std::int64_t>& ns() { return *static_cast<std::atomic<std::int64_t>*>(memory_); }

  private:
    void* memory_;
};

std::int64_t now_ns() {
    return Clock::now().time_since_epoch().count();
}

/// How long after a kill the survivors left their collective, in ms.
std::vector<double> escape_ms(int ranks, int victim, sim::RankPhase phase) {
    SharedClock killed;
    sim::WorldOptions options{.world = WorldKind::process, .size = ranks};
    options.on_phase = [&](int rank, sim::RankPhase at) {
        if (rank == victim && at == phase) {
            killed.ns().store(now_ns());
            std::raise(SIGKILL);
        }
    };
    options.staging_bytes = 0;  // blocks of 4 KiB: every phase comes up
    const auto results = sim::run_rank_functions(options, [&](sim::Communicator& world) {
        const sim::Bytes mine(static_cast<std::size_t>(5000 + 3000 * world.rank()));
        try {
            while (world.rank() != victim || phase < sim::RankPhase::returned) {
                static_cast<void>(world.all_gather(mine));
                world.barrier();
            }
            return std::string();
        } catch (const sim::RankLost&) {
            return std::to_string(now_ns() - killed.ns().load());
        }
    });
    std::vector<double> times;
    for (const sim::RankResult& result : results) {
        if (!result.error) {
            times.push_back(std::stod(result.value) * 1e-6);
        }
    }
    return times;
}

void survivors_get_away(benchmark::State& state) {
    const auto ranks = static_cast<int>(state.range(0));
    std::vector<double> times;
    for (auto _ : state) {
        // Until `reported`: in `ended` the others may have left already.
        for (int phase = 0; phase <= static_cast<int>(sim::RankPhase::reported); ++phase) {
            for (int victim = 0; victim < ranks; ++victim) {
                for (const double ms :
                     escape_ms(ranks, victim, static_cast<sim::RankPhase>(phase))) {
                    times.push_back(ms);
                }
            }
        }
    }
    state.counters["median_ms"] = quantile(times, 0.5);
    state.counters["p99_ms"] = quantile(times, 0.99);
}
BENCHMARK(survivors_get_away)->Arg(2)->Arg(4)->Arg(8)->Iterations(3);

}  // namespace
}  // namespace swaplab::bench
