/// A sample of stories, told as scenarios by fibers, threads and processes: equal states, ledgers
/// and orders of execution. A group that joins late is there from the start, as showValue() has it.

#include "property.hpp"
#include "scenario/language/scenario_file.hpp"
#include "scenario/play/play.hpp"

#include "swaplab/sim/digest.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

namespace swaplab::properties {
namespace {

using harness::scenario::Bytes2;
using harness::scenario::CapturedTensor;
using harness::scenario::MemoryFigures;
using harness::scenario::RankState;
using harness::scenario::StepRecord;

constexpr int sample = 60;

#if defined(__SANITIZE_THREAD__)  // has a thread of its own: no process world
constexpr const char* other_kinds[] = {"thread"};
#else
constexpr const char* other_kinds[] = {"thread", "process"};
#endif

/// Everything but addresses.
std::uint64_t digest_of(const RankState& state) {
    sim::RollingDigest digest;
    const auto add = [&digest](const std::string& name, const CapturedTensor& tensor) {
        digest.add(name);
        digest.add(optim::to_string(tensor.global_shape));
        digest.add(optim::to_string(tensor.local_shape));
        digest.add(std::span<const std::byte>(tensor.bytes));
        digest.add(static_cast<std::uint64_t>(tensor.memory));
    };
    for (const auto& [name, tensor] : state.params) {
        add(name, tensor);
    }
    for (const auto& view : state.views) {
        for (const auto& [name, keys] : view.state) {
            for (const auto& [key, tensor] : keys) {
                add(name + "." + key, tensor);
            }
        }
        digest.add(view.problem);
        digest.add(std::uint64_t{view.groups.size()});
    }
    return digest.value();
}

std::string ledger_of(const StepRecord& record) {
    std::string text;
    const auto add = [&text](const Bytes2& bytes) {
        text += fmt::format(" {}/{}", bytes.requested, bytes.rounded);
    };
    for (const MemoryFigures& figures : record.memory) {
        add(figures.before);
        add(figures.peak);
        add(figures.now);
        for (const auto* tags : {&figures.tags_before, &figures.tags_at_peak, &figures.tags_now}) {
            for (const auto& [tag, bytes] : *tags) {
                text += ' ' + tag;
                add(bytes);
            }
        }
        text += ';';
    }
    return text;
}

std::string scenario_of(const Story& story) {
    std::ostringstream text;
    showValue(story, text);
    text << "case = [{ optimizer = \"swap_adamw\", verdict = \"passes\" }]\n";
    return text.str();
}

/// What each rank held and had counted after each step, and the order in which its device worked.
std::vector<std::string> account(const Story& story, const char* kind) {
    harness::scenario::Overrides overrides;
    overrides.world_kind = kind;
    const auto file =
        harness::scenario::parse_scenario("story.toml", scenario_of(story), overrides);
    PROP_TRUE(file.runs.size() == 1, "the story is no scenario");
    const harness::scenario::Records records = harness::scenario::play(file.runs.front());
    PROP_TRUE(records.complete, std::string("a story of ") + kind + "s did not come to its end");
    std::vector<std::string> lines;
    for (std::size_t step = 0; step < records.steps.size(); ++step) {
        const auto& ranks = records.steps[step].ranks;
        for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
            PROP_TRUE(!ranks[rank].error, ranks[rank].error->text);
            lines.push_back(fmt::format("step {} rank {} state {:016x} ledger{}", step, rank,
                                        digest_of(ranks[rank].after), ledger_of(ranks[rank])));
        }
    }
    lines.push_back(fmt::format("execution {:016x}", records.digest));
    return lines;
}

void is_the_same_in_every_world(const Story& story) {
    const auto fibers = account(story, "fiber");
    for (const char* kind : other_kinds) {
        const auto found = account(story, kind);
        const auto differs =
            std::mismatch(fibers.begin(), fibers.end(), found.begin(), found.end());
        PROP_TRUE(differs.first == fibers.end() && differs.second == found.end(),
                  fmt::format("fibers: {}\n{}: {}",
                              differs.first == fibers.end() ? "the end" : *differs.first, kind,
                              differs.second == found.end() ? "the end" : *differs.second));
    }
}

TEST(Worlds, StatesLedgersAndExecutionsOfStoriesAreEqual) {
    const Verdict verdict = check("Worlds.StatesLedgersAndExecutionsOfStoriesAreEqual", sample,
                                  is_the_same_in_every_world);
    if (!verdict.held) {
        ADD_FAILURE() << verdict.text;
    }
}

}  // namespace
}  // namespace swaplab::properties
