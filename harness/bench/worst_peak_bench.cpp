/// The worst peak over all schedules, of swap pipelines and of random graphs.

#include "swaplab/sim/random.hpp"
#include "swaplab/sim/worst_peak.hpp"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace swaplab::bench {
namespace {

enum class BucketSizes : std::uint8_t { equal, random, growing, shrinking };

/// Bytes of bucket `index` of `count`.
std::int64_t bucket_bytes(BucketSizes sizes, std::size_t index, std::size_t count, sim::Rng& rng) {
    switch (sizes) {
        case BucketSizes::equal:
            return 1 << 20;
        case BucketSizes::random:
            return static_cast<std::int64_t>(256 * (1 + rng.below(4096)));
        case BucketSizes::growing:
            return static_cast<std::int64_t>(256 * (index + 1));
        case BucketSizes::shrinking:
            return static_cast<std::int64_t>(256 * (count - index));
    }
    return 0;
}

/// What a swap step records: per bucket 10 or 11 operations on an upload, a compute and a download
/// stream; allocation and free are stream-ordered; every 4th bucket the host waits for a slot, and
/// all that it issues later is ordered after that.
class Pipeline {
  public:
    Pipeline(std::size_t operation_count, std::size_t slots, BucketSizes sizes) {
        sim::Rng rng(1);
        const std::size_t buckets = operation_count / 10;
        for (std::size_t k = 0; graph_.weight_bytes.size() < operation_count; ++k) {
            add_bucket(bucket_bytes(sizes, k, buckets, rng), slots);
            if (k >= slots && k % 4 == 3) {
                const std::uint32_t waited_for = freed_[k - slots + 1];
                host_ = add(std::nullopt, 0);
                graph_.edges.push_back({waited_for, *host_});
            }
        }
    }

    [[nodiscard]] sim::PeakGraph take() && { return std::move(graph_); }

  private:
    enum Stream : std::uint8_t { upload, compute, download };

    std::uint32_t add(std::optional<Stream> stream, std::int64_t weight) {
        const auto id = static_cast<std::uint32_t>(graph_.weight_bytes.size());
        graph_.weight_bytes.push_back(weight);
        if (host_) {
            graph_.edges.push_back({*host_, id});
        }
        if (stream) {
            auto& last = last_[*stream];
            if (last) {
                graph_.edges.push_back({*last, id});
            }
            last = id;
        }
        return id;
    }

    void add_wait(Stream stream, std::uint32_t event) {
        graph_.edges.push_back({event, add(stream, 0)});
    }

    void add_bucket(std::int64_t bytes, std::size_t slots) {
        if (freed_.size() >= slots) {
            add_wait(upload, freed_[freed_.size() - slots]);
        }
        add(upload, bytes);
        add(upload, 0);
        add_wait(compute, add(upload, 0));
        add(compute, 0);
        add_wait(download, add(compute, 0));
        add(download, 0);
        add(download, -bytes);
        freed_.push_back(add(download, 0));
    }

    sim::PeakGraph graph_;
    std::array<std::optional<std::uint32_t>, 3> last_;
    std::optional<std::uint32_t> host_;
    std::vector<std::uint32_t> freed_;
};

/// Each operation waits for two among the `window` before it. A third allocate, a third free.
sim::PeakGraph random_graph(std::uint32_t operation_count, std::uint32_t window) {
    sim::Rng rng(1);
    sim::PeakGraph graph;
    graph.weight_bytes.resize(operation_count);
    std::vector<std::uint32_t> live;
    for (std::uint32_t id = 0; id < operation_count; ++id) {
        const std::uint64_t kind = rng.below(3);
        if (kind == 0) {
            graph.weight_bytes[id] = static_cast<std::int64_t>(256 * (1 + rng.below(4096)));
            live.push_back(id);
        } else if (kind == 1 && !live.empty()) {
            const std::uint64_t back = rng.below(std::min<std::uint64_t>(live.size(), window));
            std::swap(live.back(), live[live.size() - 1 - back]);
            graph.weight_bytes[id] = -graph.weight_bytes[live.back()];
            graph.edges.push_back({live.back(), id});
            live.pop_back();
        }
        for (int edge = 0; edge < 2 && id > 0; ++edge) {
            const std::uint64_t back = 1 + rng.below(std::min(window, id));
            graph.edges.push_back({id - static_cast<std::uint32_t>(back), id});
        }
    }
    return graph;
}

void measure(benchmark::State& state, const sim::PeakGraph& graph) {
    for (auto _ : state) {
        benchmark::DoNotOptimize(sim::worst_peak(graph));
    }
    state.counters["edges"] = static_cast<double>(graph.edges.size());
    state.SetItemsProcessed(state.iterations() *
                            static_cast<std::int64_t>(graph.weight_bytes.size()));
}

void worst_peak_of_pipeline(benchmark::State& state, BucketSizes sizes) {
    measure(state, Pipeline(static_cast<std::size_t>(state.range(0)),
                            static_cast<std::size_t>(state.range(1)), sizes)
                       .take());
}
BENCHMARK_CAPTURE(worst_peak_of_pipeline, equal, BucketSizes::equal)
    ->ArgsProduct({{10'000, 100'000}, {3, 16}})
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(worst_peak_of_pipeline, random, BucketSizes::random)
    ->ArgsProduct({{10'000, 100'000}, {3, 16}})
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(worst_peak_of_pipeline, growing, BucketSizes::growing)
    ->ArgsProduct({{10'000, 100'000}, {3, 16}})
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(worst_peak_of_pipeline, shrinking, BucketSizes::shrinking)
    ->ArgsProduct({{10'000, 100'000}, {3, 16}})
    ->Unit(benchmark::kMillisecond);

void worst_peak_of_random_graph(benchmark::State& state) {
    measure(state, random_graph(static_cast<std::uint32_t>(state.range(0)),
                                static_cast<std::uint32_t>(state.range(1))));
}
BENCHMARK(worst_peak_of_random_graph)
    ->ArgsProduct({{10'000, 100'000}, {10, 1'000, 100'000}})
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace swaplab::bench
