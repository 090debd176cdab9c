/// Ranks as threads: the protocol of the process world where ThreadSanitizer can see it.

#include "world/futex_hub.hpp"
#include "world/rank_run.hpp"
#include "world/worlds.hpp"

#include <fmt/format.h>

#include <chrono>
#include <poll.h>
#include <thread>
#include <utility>

namespace swaplab::sim {

namespace {

/// As long as a stopped rank is waited for.
void wait_stopped(WorldState& world) {
    constexpr int slice_ms = 10;
    const auto until = std::chrono::steady_clock::now() + world.options().deadline / 2;
    while (std::chrono::steady_clock::now() < until && !world.broken()) {
        ::poll(nullptr, 0, slice_ms);
    }
}

}  // namespace

std::vector<RankResult> run_threads(const WorldOptions& options, const RankFunction& program) {
    FutexHub hub(FutexHub::Reach::threads, options.deadline);
    WorldState world(options, hub);
    std::vector<RankResult> results(static_cast<std::size_t>(options.size));
    std::vector<std::thread> threads;
    const auto run = [&](int rank) {
        RankRun one(world, rank, program);
        one.resume_to_end();
        if (one.wish() == RankRun::Wish::stop) {
            wait_stopped(world);
        }
        one.show_end(fmt::format("for more than {} ms", options.deadline.count() / 2));
        results[static_cast<std::size_t>(rank)] = std::move(one.result());
    };
    try {
        for (int rank = 0; rank < options.size; ++rank) {
            threads.emplace_back(run, rank);
        }
    } catch (const std::system_error&) {
        for (int rank = static_cast<int>(threads.size()); rank < options.size; ++rank) {
            world.end(rank, End::threw, "its thread could not be started");
        }
        for (std::thread& thread : threads) {
            thread.join();
        }
        throw;
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
    return results;
}

}  // namespace swaplab::sim
