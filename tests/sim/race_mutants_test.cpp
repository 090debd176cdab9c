/// Random correct programs give no finding and one result; each of them with one order taken away,
/// or one access a byte wider, is a race between the very operations that are no longer ordered.

#include "race_programs.hpp"

#include "swaplab/sim/simulated_device.hpp"

#include <algorithm>
#include <optional>

namespace swaplab::sim {
namespace {

using race_programs::Op;
using race_programs::Program;
using race_programs::Step;
using race_programs::Unordered;
using race_programs::Use;

constexpr std::uint64_t program_count = 100;

SimulatedDeviceOptions with(Schedule schedule, std::uint64_t seed) {
    SimulatedDeviceOptions options;
    options.schedule = schedule;
    options.seed = seed;
    return options;
}

std::string all_texts(const SimulatedDevice& device) {
    std::string texts;
    for (const Finding& finding : device.findings()) {
        texts += finding.text + "\n";
    }
    return texts;
}

TEST(RacePrograms, CorrectOnesGiveNoFindingAndEqualBytesUnderEverySchedule) {
    for (std::uint64_t seed = 1; seed <= program_count; ++seed) {
        const Program program = race_programs::make_correct(seed);
        ASSERT_EQ(race_programs::unordered_pairs(program).size(), 0U);
        std::optional<std::vector<std::byte>> expected;
        for (const Schedule schedule :
             {Schedule::fifo, Schedule::random, Schedule::latest, Schedule::pct}) {
            const auto device = make_simulated_device(with(schedule, seed));
            const std::vector<std::byte> read = race_programs::run(program, *device);
            device->finish();
            ASSERT_EQ(all_texts(*device), "") << "seed " << seed;
            ASSERT_EQ(read, expected.value_or(read)) << "seed " << seed;
            expected = read;
        }
    }
}

std::vector<std::string> values_of(const Finding& finding, const std::string& name) {
    std::vector<std::string> values;
    for (const ErrorField& field : finding.fields) {
        if (field.name == name) {
            values.push_back(field.value);
        }
    }
    return values;
}

std::size_t step_of(const std::string& site) {
    return std::stoul(site.substr(site.find(':') + 1));
}

std::string missing_edge(const Program& program, const Unordered& pair) {
    const Step& later = program.steps[pair.later];
    return "record on " + race_programs::stream_name(*program.steps[pair.earlier].stream) +
           (later.stream ? " -> wait on " + race_programs::stream_name(*later.stream)
                         : " -> synchronize");
}

/// Both operations touch the whole reported range.
void expect_range(const Program& program, const Unordered& pair, const Finding& finding) {
    const std::uint64_t begin = std::stoul(values_of(finding, "offset_bytes").at(0));
    const std::uint64_t end = begin + std::stoul(values_of(finding, "bytes").at(0));
    EXPECT_LT(begin, end);
    for (const std::size_t step : {pair.earlier, pair.later}) {
        const auto& uses = program.steps[step].uses;
        EXPECT_TRUE(std::any_of(uses.begin(), uses.end(), [&](const Use& use) {
            return use.memory == pair.memory && use.begin <= begin && end <= use.end;
        })) << finding.text;
    }
}

/// The mutant is caught, everything reported is really unordered, and the first step that conflicts
/// with an earlier one is among it.
void expect_caught(const Program& mutant, Schedule schedule) {
    const std::set<Unordered> pairs = race_programs::unordered_pairs(mutant);
    const auto device = make_simulated_device(with(schedule, 1));
    static_cast<void>(race_programs::run(mutant, *device));
    std::size_t first_caught = mutant.steps.size();
    for (const Finding& finding : device->findings()) {
        if (finding.kind == FindingKind::unwaited_event) {
            continue;
        }
        const std::vector<std::string> sites = values_of(finding, "site");
        ASSERT_EQ(sites.size(), 2U) << finding.text;
        const std::string tag = values_of(finding, "tag").at(0);
        const Unordered pair{step_of(sites[1]), step_of(sites[0]),
                             std::stoul(tag.substr(tag.find(' ') + 1))};
        ASSERT_TRUE(pairs.count(pair) == 1) << "not unordered: " << finding.text;
        const Op later = mutant.steps[pair.later].op;
        EXPECT_EQ(finding.kind, later == Op::free || later == Op::free_pinned
                                    ? FindingKind::in_flight_reuse
                                    : FindingKind::race);
        EXPECT_EQ(values_of(finding, "missing").at(0), missing_edge(mutant, pair));
        expect_range(mutant, pair, finding);
        first_caught = std::min(first_caught, pair.later);
    }
    const auto first =
        std::min_element(pairs.begin(), pairs.end(),
                         [](const Unordered& a, const Unordered& b) { return a.later < b.later; });
    EXPECT_EQ(first_caught, first->later) << all_texts(*device);
}

TEST(RacePrograms, EachLessOneOrderIsCaughtWithBothOperationsAndTheMissingEdge) {
    int mutants = 0;
    for (std::uint64_t seed = 1; seed <= program_count; ++seed) {
        const Program program = race_programs::make_correct(seed);
        for (std::size_t step = 0; step < program.steps.size(); ++step) {
            if (!program.steps[step].is_edge()) {
                continue;
            }
            Program mutant = program;
            mutant.steps.erase(mutant.steps.begin() + static_cast<std::ptrdiff_t>(step));
            if (!race_programs::unordered_pairs(mutant).empty()) {
                ++mutants;
                ASSERT_NO_FATAL_FAILURE(expect_caught(mutant, Schedule::fifo)) << "seed " << seed;
                ASSERT_NO_FATAL_FAILURE(expect_caught(mutant, Schedule::latest)) << "seed " << seed;
            }
        }
    }
    EXPECT_GE(mutants, 60);
    RecordProperty("mutants", mutants);
}

std::uint64_t size_of(const Program& program, std::size_t memory) {
    for (const Step& step : program.steps) {
        if ((step.op == Op::allocate || step.op == Op::allocate_pinned) &&
            step.uses[0].memory == memory) {
            return step.uses[0].end;
        }
    }
    return 0;
}

enum class Widened { front, back };

/// The program with every range of one step a byte longer; empty where there is no such byte.
std::optional<Program> widened(const Program& program, std::size_t step, Widened where) {
    Program mutant = program;
    for (Use& use : mutant.steps[step].uses) {
        if (where == Widened::front ? use.begin == 0 : use.end == size_of(program, use.memory)) {
            return std::nullopt;
        }
        where == Widened::front ? --use.begin : ++use.end;
    }
    return mutant;
}

TEST(RacePrograms, EachWithAnAccessAByteWiderIsCaught) {
    int mutants = 0;
    for (std::uint64_t seed = 1; seed <= program_count; ++seed) {
        const Program program = race_programs::make_correct(seed);
        for (std::size_t step = 0; step < program.steps.size(); ++step) {
            for (const Widened where : {Widened::front, Widened::back}) {
                const auto mutant = widened(program, step, where);
                if (mutant && !race_programs::unordered_pairs(*mutant).empty()) {
                    ++mutants;
                    ASSERT_NO_FATAL_FAILURE(expect_caught(*mutant, Schedule::random))
                        << "seed " << seed;
                }
            }
        }
    }
    EXPECT_GE(mutants, 60);
    RecordProperty("mutants", mutants);
}

}  // namespace
}  // namespace swaplab::sim
