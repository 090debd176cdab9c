/// Saving and loading a DCP checkpoint against copying the same bytes, and a whole small resume.

#include "bench_run.hpp"

#include "swaplab/sim/world.hpp"

#include <benchmark/benchmark.h>

#include <cstring>

namespace swaplab::bench {
namespace {

void dcp_round_trip_against_memcpy(benchmark::State& state) {
    sim::rethrow_first(sim::run_ranks({}, [&](sim::Communicator& communicator) {
        BenchRun run(communicator, state.range(0));
        const auto optimizer = run.make_swap_adamw(communicator);
        optimizer->step();
        const auto storage = harness::make_memory_storage();
        harness::TrainEngine engine(run.device(), communicator, *storage, run.model(), *optimizer);
        const std::uint64_t bytes = engine.save_dcp("x").bytes;
        const std::vector<std::byte> source(bytes, std::byte{1});
        std::vector<std::byte> target(bytes);
        double copy_seconds = 0;
        double trip_seconds = 0;
        for (auto _ : state) {
            copy_seconds += seconds_of([&] {
                std::memcpy(target.data(), source.data(), bytes);
                benchmark::DoNotOptimize(target.data());
                benchmark::ClobberMemory();
            });
            const double seconds = seconds_of([&] {
                (void)engine.save_dcp("x");
                engine.load_dcp("x");
            });
            trip_seconds += seconds;
            state.SetIterationTime(seconds);
        }
        state.counters["trip/memcpy"] = trip_seconds / copy_seconds;
        state.SetBytesProcessed(state.iterations() * 2 * static_cast<std::int64_t>(bytes));
    }));
}
BENCHMARK(dcp_round_trip_against_memcpy)->Arg(1 << 16)->Arg(1 << 22)->UseManualTime();

/// Everything that a two-rank resume scenario does.
void two_ranks_save_load_step(benchmark::State& state) {
    for (auto _ : state) {
        const auto storage = harness::make_memory_storage();
        sim::WorldOptions world;
        world.size = 2;
        sim::rethrow_first(sim::run_ranks(world, [&](sim::Communicator& communicator) {
            BenchRun run(communicator, 1 << 12);
            const auto optimizer = run.make_swap_adamw(communicator);
            harness::TrainEngine engine(run.device(), communicator, *storage, run.model(),
                                        *optimizer);
            optimizer->step();
            (void)engine.save_dcp("x");
            engine.load_dcp("x");
            optimizer->step();
        }));
    }
}
BENCHMARK(two_ranks_save_load_step)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace swaplab::bench
