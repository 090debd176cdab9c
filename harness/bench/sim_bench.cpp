/// What the simulated accelerator costs: operations, allocations, copies, whole small runs, and
/// the memory of its checks. Ratios are taken in the same run.

#include "bench_seconds.hpp"

#include "swaplab/sim/buffer.hpp"
#include "swaplab/sim/random.hpp"
#include "swaplab/sim/simulated_device.hpp"
#include "swaplab/sim/stream.hpp"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace swaplab::bench {
namespace {

using sim::CopyDirection;

enum Checks : int { off, on };

std::unique_ptr<sim::SimulatedDevice> make_device(std::uint64_t capacity_bytes, bool checks,
                                                  bool poison = true) {
    sim::SimulatedDeviceOptions options;
    options.capacity_bytes = capacity_bytes;
    options.check_accesses = checks;
    options.poison = poison;
    return sim::make_simulated_device(options);
}

/// The yardstick of the figures below: finding the block that holds an address in an ordered map.
void ordered_map_lookup(benchmark::State& state) {
    std::map<std::uint64_t, std::uint64_t> blocks;
    const auto count = static_cast<std::uint64_t>(state.range(0));
    for (std::uint64_t i = 0; i < count; ++i) {
        blocks.emplace(i * 256, i);
    }
    sim::Rng rng(1);
    for (auto _ : state) {
        benchmark::DoNotOptimize(std::prev(blocks.upper_bound(rng.below(count * 256)))->second);
    }
}
BENCHMARK(ordered_map_lookup)->ArgName("blocks")->Arg(1000)->Arg(100000);

/// A swap pipeline of small buckets: what a step issues, over and over. 9 operations a bucket.
class Pipeline {
  public:
    explicit Pipeline(sim::SimulatedDevice& device) : device_(device) {
        for (std::size_t slot = 0; slot < slot_count; ++slot) {
            slots_.emplace_back(device, bucket_bytes, upload_, "slot");
            for (auto* events : {&uploaded_, &updated_, &downloaded_}) {
                events->emplace_back(device);
            }
        }
    }

    /// Issues and runs one pass over the buckets; returns the number of operations.
    std::int64_t pass() {
        for (std::size_t bucket = 0; bucket < bucket_count; ++bucket) {
            swap(bucket, bucket % slot_count);
        }
        for (const sim::Event& event : downloaded_) {
            device_.synchronize(event.ref());
        }
        return bucket_count * 9 + slot_count;
    }

  private:
    static constexpr std::size_t bucket_count = 64;
    static constexpr std::size_t slot_count = 4;
    static constexpr std::uint64_t bucket_bytes = 256;

    void swap(std::size_t bucket, std::size_t slot) {
        std::byte* const host = moments_.data() + bucket * bucket_bytes;
        std::byte* const there = slots_[slot].data();
        device_.wait(upload_, downloaded_[slot]);
        device_.copy_async(there, host, bucket_bytes, CopyDirection::host_to_device, upload_);
        device_.record(uploaded_[slot], upload_);
        device_.wait(update_, uploaded_[slot]);
        const sim::ByteRange range{there, bucket_bytes};
        device_.launch({"update", {range}, {range}, {}, {}}, update_);
        device_.record(updated_[slot], update_);
        device_.wait(download_, updated_[slot]);
        device_.copy_async(host, there, bucket_bytes, CopyDirection::device_to_host, download_);
        device_.record(downloaded_[slot], download_);
    }

    sim::SimulatedDevice& device_;
    sim::Stream upload_{device_, "upload"};
    sim::Stream update_{device_, "update"};
    sim::Stream download_{device_, "download"};
    sim::PinnedBuffer moments_{device_, bucket_count* bucket_bytes, "moments"};
    std::vector<sim::DeviceBuffer> slots_;
    std::vector<sim::Event> uploaded_;
    std::vector<sim::Event> updated_;
    std::vector<sim::Event> downloaded_;
};

/// A fresh device every 100 passes: the log of a run grows, and its growth is part of the price.
void operations(benchmark::State& state) {
    std::int64_t count = 0;
    while (state.KeepRunningBatch(100)) {
        const auto device = make_device(std::uint64_t{1} << 20U, state.range(0) == on);
        Pipeline pipeline(*device);
        for (int pass = 0; pass < 100; ++pass) {
            count += pipeline.pass();
        }
    }
    state.SetItemsProcessed(count);
}
BENCHMARK(operations)->ArgName("checks")->Arg(on)->Arg(off);

/// What one device recorded: `operations` of a pipeline whose slots are allocated and freed bucket
/// by bucket, with a step's end every 64 buckets. The graph and the schedule are part of the price.
void worst_peak_of_a_device(benchmark::State& state) {
    constexpr std::size_t slots = 3;
    constexpr std::uint64_t bytes = 256;
    const auto device = make_device(std::uint64_t{1} << 20U, false, false);
    const sim::Stream upload(*device, "upload");
    const sim::Stream download(*device, "download");
    std::vector<sim::Event> uploaded;
    std::vector<sim::Event> freed;
    for (std::size_t slot = 0; slot < slots; ++slot) {
        uploaded.emplace_back(*device);
        freed.emplace_back(*device);
    }
    for (std::size_t bucket = 0; static_cast<std::int64_t>(bucket * 7) < state.range(0); ++bucket) {
        const std::size_t slot = bucket % slots;
        device->wait(upload, freed[slot]);
        void* memory = device->allocate(bytes, upload, "slot");
        device->launch({"copy", {}, {}, {}, {}}, upload);
        device->record(uploaded[slot], upload);
        device->wait(download, uploaded[slot]);
        device->deallocate(memory, download);
        device->record(freed[slot], download);
        if (bucket % 64 == 63) {
            device->synchronize(freed[slot].ref());
        }
    }
    for (auto _ : state) {
        benchmark::DoNotOptimize(device->worst_peak());
    }
    state.counters["slots"] = static_cast<double>(device->worst_peak().bytes / bytes);
    state.SetItemsProcessed(state.iterations() *
                            static_cast<std::int64_t>(device->worst_peak().schedule.size()));
}
BENCHMARK(worst_peak_of_a_device)
    ->ArgName("operations")
    ->Arg(10'000)
    ->Arg(100'000)
    ->Unit(benchmark::kMillisecond);

/// Frees the oldest of the live allocations and makes a new one of another size.
void allocate_and_free(benchmark::State& state) {
    const auto live = static_cast<std::size_t>(state.range(0));
    const auto device = make_device(std::uint64_t{1} << 30U, true);
    const sim::Stream stream(*device, "stream");
    const std::array<std::string, 4> tags{"a.exp_avg", "a.exp_avg_sq", "slot 0", "grad"};
    std::vector<void*> allocations(live);
    sim::Rng rng(1);
    const auto allocate = [&](std::size_t i) {
        return device->allocate(256 * (1 + rng.below(8)), stream, tags[i % tags.size()]);
    };
    for (std::size_t i = 0; i < live; ++i) {
        allocations[i] = allocate(i);
    }
    device->synchronize(stream.ref());
    std::size_t next = 0;
    for (auto _ : state) {
        device->deallocate(allocations[next % live], stream);
        allocations[next % live] = allocate(next);
        if (++next % 1000 == 0) {
            device->synchronize(stream.ref());
        }
    }
    for (void* allocation : allocations) {
        device->deallocate(allocation, stream);
    }
    device->synchronize(stream.ref());
}
BENCHMARK(allocate_and_free)->ArgName("live")->Arg(1000)->Arg(100000);

/// One upload and one download of a whole buffer against memcpy of the same bytes in the same
/// memory, all of it touched before; the shortest of each. No poison: it writes each download's
/// destination once more. With page guards on demand.
void copy_against_memcpy(benchmark::State& state) {
    const auto bytes = static_cast<std::uint64_t>(state.range(0));
    sim::SimulatedDeviceOptions options;
    options.capacity_bytes = 2 * bytes;
    options.poison = false;
    options.page_guards = state.range(1) == on;
    const auto device = sim::make_simulated_device(options);
    const sim::Stream stream(*device, "stream");
    const sim::DeviceBuffer memory(*device, bytes, stream, "memory");
    sim::PinnedBuffer pinned(*device, bytes, "pinned");
    auto* const alias = const_cast<std::byte*>(device->inspect(memory.data()));
    std::memset(alias, 1, bytes);
    double device_seconds = std::numeric_limits<double>::max();
    double memcpy_seconds = device_seconds;
    for (auto _ : state) {
        memcpy_seconds = std::min(memcpy_seconds, seconds_of([&] {
                                      std::memcpy(alias, pinned.data(), bytes);
                                      benchmark::ClobberMemory();
                                      std::memcpy(pinned.data(), alias, bytes);
                                      benchmark::ClobberMemory();
                                  }));
        const double seconds = seconds_of([&] {
            device->copy_async(memory.data(), pinned.data(), bytes, CopyDirection::host_to_device,
                               stream);
            device->copy_async(pinned.data(), memory.data(), bytes, CopyDirection::device_to_host,
                               stream);
            device->synchronize(stream.ref());
        });
        device_seconds = std::min(device_seconds, seconds);
        state.SetIterationTime(seconds);
    }
    state.counters["copy/memcpy"] = device_seconds / memcpy_seconds;
    state.SetBytesProcessed(state.iterations() * 2 * static_cast<std::int64_t>(bytes));
}
BENCHMARK(copy_against_memcpy)
    ->ArgNames({"bytes", "guards"})
    ->ArgsProduct({{1 << 12, 1 << 20, 1 << 24, 1 << 26}, {off, on}})
    ->UseManualTime();

/// One program of 200 operations on a device of its own, another seed each time.
void two_hundred_operations_a_seed(benchmark::State& state) {
    sim::SimulatedDeviceOptions options;
    options.capacity_bytes = std::uint64_t{1} << 20U;
    options.schedule = sim::Schedule::random;
    for (auto _ : state) {
        ++options.seed;
        const auto device = sim::make_simulated_device(options);
        {
            const sim::Stream one(*device, "one");
            const sim::Stream two(*device, "two");
            const sim::Event event(*device);
            const sim::DeviceBuffer memory(*device, 1024, one, "memory");
            for (int i = 0; i < 33; ++i) {
                device->fill_async(memory.data(), std::byte{1}, 1024, one);
                device->record(event, one);
                device->wait(two, event);
                device->fill_async(memory.data(), std::byte{2}, 1024, two);
                device->record(event, two);
                device->wait(one, event);
            }
            device->synchronize(one.ref());
        }
        device->finish();
    }
    state.counters["s per 10,000 seeds"] =
        benchmark::Counter(static_cast<double>(state.iterations()) / 10000,
                           benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}
BENCHMARK(two_hundred_operations_a_seed)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace swaplab::bench
