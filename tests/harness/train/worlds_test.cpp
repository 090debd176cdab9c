/// One training program as fibers, threads and processes: the same bits, figures and files.

#include "fixture.hpp"
#include "support/temporary_directory.hpp"

#include "swaplab/harness/storage.hpp"
#include "swaplab/sim/digest.hpp"
#include "swaplab/sim/error.hpp"
#include "swaplab/sim/world.hpp"

#include <fmt/format.h>

#include <csignal>

namespace swaplab::testing {
namespace {

using sim::WorldKind;

#if defined(__SANITIZE_THREAD__)  // has a thread of its own: no process world
const std::vector<WorldKind> kinds{WorldKind::fiber, WorldKind::thread};
#else
const std::vector<WorldKind> kinds{WorldKind::fiber, WorldKind::thread, WorldKind::process};
#endif

/// What one rank holds, global values included, and what its device counted.
std::string account(sim::Communicator& world, EngineRun& run) {
    sim::RollingDigest state;
    for (const auto& [name, values] : global_state(world, run)) {
        state.add(name);
        state.add(std::as_bytes(std::span(values)));
    }
    std::string text = fmt::format("state {:016x} execution {:016x}", state.value(),
                                   run.rig.device().execution_digest());
    for (const auto kind :
         {sim::MemoryKind::device, sim::MemoryKind::pinned, sim::MemoryKind::host}) {
        text += fmt::format(" {} of {}", run.rig.device().ledger().now(kind),
                            run.rig.device().ledger().peak(kind));
    }
    for (const std::string& finding : run.rig.findings()) {
        text += "\n" + finding;
    }
    return text;
}

std::vector<std::string> values_of(const std::vector<sim::RankResult>& results) {
    sim::rethrow_first(results);
    std::vector<std::string> values;
    for (const sim::RankResult& result : results) {
        values.push_back(result.value);
    }
    return values;
}

std::vector<std::string> train_and_save(WorldKind kind, int ranks, const std::string& directory) {
    return values_of(
        sim::run_rank_functions({.world = kind, .size = ranks}, [&](sim::Communicator& world) {
            const auto storage = harness::make_posix_storage();
            EngineRun run(world, *storage);
            run.train(1, 4);
            run.engine.save_dcp(directory);
            return account(world, run);
        }));
}

std::vector<std::string> load_and_train(WorldKind kind, int ranks, const std::string& directory) {
    return values_of(
        sim::run_rank_functions({.world = kind, .size = ranks}, [&](sim::Communicator& world) {
            const auto storage = harness::make_posix_storage();
            EngineRun run(world, *storage);
            run.engine.load_dcp(directory);
            run.train(5, 6);
            return account(world, run);
        }));
}

TEST(TrainingInWorlds, StatesFiguresAndFilesAreTheSameInEveryKindOfWorld) {
    for (const int ranks : {1, 2, 4}) {
        std::vector<std::vector<std::string>> seen;
        for (const WorldKind writer : kinds) {
            const tests::TemporaryDirectory directory;
            const std::string checkpoint = directory.path() + "/checkpoint";
            std::vector<std::string> story = train_and_save(writer, ranks, checkpoint);
            for (const WorldKind reader : kinds) {
                std::vector<std::string> rest = load_and_train(reader, 3, checkpoint);
                if (reader == kinds.front()) {
                    story.insert(story.end(), rest.begin(), rest.end());
                }
                EXPECT_EQ(rest, std::vector<std::string>(story.end() - 3, story.end()))
                    << sim::name_of(writer) << " read by " << sim::name_of(reader);
            }
            seen.push_back(std::move(story));
            EXPECT_EQ(seen.back(), seen.front()) << sim::name_of(writer);
        }
    }
}

#if !defined(__SANITIZE_THREAD__)

/// Saves steps 1..6 over what is there; kills rank 1 at its nth collective, if there are so many.
/// Returns whether it was killed.
bool save_again_and_kill(const std::string& directory, int nth) {
    int calls = 0;
    sim::WorldOptions options{.world = WorldKind::process, .size = 2};
    options.on_phase = [&](int rank, sim::RankPhase phase) {
        if (rank == 1 && phase == sim::RankPhase::called && ++calls == nth) {
            std::raise(SIGKILL);
        }
    };
    const auto results = sim::run_ranks(options, [&](sim::Communicator& world) {
        const auto storage = harness::make_posix_storage();
        EngineRun run(world, *storage);
        run.train(1, 6);
        run.engine.save_dcp(directory);
    });
    const bool killed = results[1].end == sim::RankResult::End::killed;
    EXPECT_EQ(killed, results[0].error != nullptr);
    return killed;
}

TEST(TrainingInWorlds, ASaveKilledAtAnyCollectiveLeavesTheOldOrTheNewCheckpoint) {
    const tests::TemporaryDirectory directory;
    const std::string checkpoint = directory.path() + "/checkpoint";
    train_and_save(WorldKind::process, 2, checkpoint);
    const auto before = load_and_train(WorldKind::fiber, 2, checkpoint);
    ASSERT_FALSE(save_again_and_kill(directory.path() + "/other", 1'000'000));
    const auto after = load_and_train(WorldKind::fiber, 2, directory.path() + "/other");
    int kills = 0;
    while (save_again_and_kill(checkpoint, kills + 1)) {
        ++kills;
        const auto found = load_and_train(WorldKind::fiber, 2, checkpoint);
        EXPECT_TRUE(found == before || found == after) << "killed at collective " << kills;
    }
    EXPECT_GT(kills, 3);
    EXPECT_EQ(load_and_train(WorldKind::fiber, 2, checkpoint), after);
}

#endif

}  // namespace
}  // namespace swaplab::testing
