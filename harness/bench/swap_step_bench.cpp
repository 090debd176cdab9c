/// How much longer a step takes when the moments are swapped through the device.

#include "bench_run.hpp"

#include "swaplab/optim/adamw.hpp"
#include "swaplab/sim/world.hpp"

#include <benchmark/benchmark.h>

namespace swaplab::bench {
namespace {

void swap_step_against_plain_step(benchmark::State& state) {
    sim::rethrow_first(sim::run_ranks({}, [&](sim::Communicator& communicator) {
        BenchRun plain_run(communicator, state.range(0));
        BenchRun swap_run(communicator, state.range(0));
        optim::AdamW plain(plain_run.device(), communicator, plain_run.groups());
        const auto swap = swap_run.make_swap_adamw(communicator);
        plain.step();
        swap->step();
        double plain_seconds = 0;
        double swap_seconds = 0;
        for (auto _ : state) {
            plain_seconds += seconds_of([&] { plain.step(); });
            const double seconds = seconds_of([&] { swap->step(); });
            swap_seconds += seconds;
            state.SetIterationTime(seconds);
        }
        state.counters["swap/plain"] = swap_seconds / plain_seconds;
    }));
    state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(swap_step_against_plain_step)->Arg(1 << 16)->Arg(1 << 20)->Arg(1 << 22)->UseManualTime();

}  // namespace
}  // namespace swaplab::bench
