#include "swaplab/sim/worst_peak.hpp"

#include "peak/pseudoflow.hpp"
#include "random_peak_graph.hpp"

#include "swaplab/sim/error.hpp"

#include <algorithm>
#include <limits>

namespace swaplab::sim {
namespace {

constexpr std::int64_t most_bytes = std::numeric_limits<std::int64_t>::max();

/// Largest sum over all down-closed sets, and the intersection of those that reach it.
struct BruteForce {
    std::int64_t bytes = 0;
    std::vector<bool> smallest_state;
};

/// `order` must be legal; looks at all 2^n sets.
BruteForce try_all_states(const PeakGraph& graph, const std::vector<std::uint32_t>& order) {
    const std::size_t count = order.size();
    std::vector<std::uint32_t> before(count);
    for (std::size_t place = 0; place < count; ++place) {
        for (const OrderEdge& edge : graph.edges) {
            if (edge.after == order[place]) {
                const auto found = std::find(order.begin(), order.end(), edge.before);
                before[place] |= 1U << (found - order.begin());
            }
        }
    }
    std::vector<bool> closed{true};
    std::vector<std::int64_t> sums{0};
    std::int64_t best = 0;
    std::uint32_t common = 0;
    for (std::size_t top = 0; top < count; ++top) {
        for (std::uint32_t rest = 0; rest < 1U << top; ++rest) {
            closed.push_back(closed[rest] && (before[top] & ~rest) == 0);
            sums.push_back(sums[rest] + graph.weight_bytes[order[top]]);
            const std::uint32_t state = rest | 1U << top;
            if (closed.back() && sums.back() >= best) {
                common = sums.back() > best ? state : common & state;
                best = sums.back();
            }
        }
    }
    BruteForce result{best, std::vector<bool>(count)};
    for (std::size_t place = 0; place < count; ++place) {
        result.smallest_state[order[place]] = (common >> place & 1U) != 0;
    }
    return result;
}

std::vector<bool> state_at_peak(const WorstPeak& worst) {
    std::vector<bool> state(worst.order.size());
    for (std::size_t place = 0; place < worst.operations_at_peak; ++place) {
        state[worst.order[place]] = true;
    }
    return state;
}

/// The same graph for the solver alone: nodes in the order `order`.
ClosureGraph in_order(const PeakGraph& graph, const std::vector<std::uint32_t>& order) {
    std::vector<std::uint32_t> places(order.size());
    ClosureGraph nodes;
    for (std::uint32_t place = 0; place < order.size(); ++place) {
        places[order[place]] = place;
        nodes.weights.push_back(graph.weight_bytes[order[place]]);
    }
    std::vector<OrderEdge> edges;
    for (const OrderEdge& edge : graph.edges) {
        edges.push_back({places[edge.before], places[edge.after]});
    }
    nodes.predecessors = Predecessors(order.size(), edges);
    return nodes;
}

/// A step of a bucketed swap on three streams: `slots` slots, `buckets` buckets of these sizes.
PeakGraph swap_pipeline(const std::vector<std::int64_t>& bucket_bytes, std::size_t slots) {
    PeakGraph graph;
    std::vector<std::uint32_t> last(3, std::numeric_limits<std::uint32_t>::max());
    const auto add = [&](std::size_t stream, std::int64_t weight) {
        const auto id = static_cast<std::uint32_t>(graph.weight_bytes.size());
        graph.weight_bytes.push_back(weight);
        if (last[stream] != std::numeric_limits<std::uint32_t>::max()) {
            graph.edges.push_back({last[stream], id});
        }
        last[stream] = id;
        return id;
    };
    std::vector<std::uint32_t> freed;
    for (const std::int64_t bytes : bucket_bytes) {
        const std::uint32_t allocated = add(0, bytes);
        if (freed.size() >= slots) {
            graph.edges.push_back({freed[freed.size() - slots], allocated});
        }
        const std::uint32_t uploaded = add(0, 0);
        const std::uint32_t updated = add(1, 0);
        graph.edges.push_back({uploaded, updated});
        graph.edges.push_back({updated, add(2, 0)});
        freed.push_back(add(2, -bytes));
    }
    return graph;
}

TEST(WorstPeak, OfNothingIsNothing) {
    const WorstPeak worst = worst_peak({});
    EXPECT_EQ(worst.bytes, 0);
    EXPECT_THAT(worst.order, ::testing::IsEmpty());
    EXPECT_EQ(worst.operation(), std::nullopt);
}

TEST(WorstPeak, WithoutOrderRunsAllAllocationsFirst) {
    const WorstPeak worst = worst_peak({{-5, 7, 0, 11, -7}, {}});
    EXPECT_EQ(worst.bytes, 18);
    EXPECT_THAT(worst.order, ::testing::ElementsAre(1, 3, 0, 2, 4));
    EXPECT_EQ(worst.operations_at_peak, 2U);
    EXPECT_EQ(worst.operation(), 3U);
}

TEST(WorstPeak, OfAChainIsItsHighestPrefix) {
    const WorstPeak worst =
        worst_peak({{4, -4, 9, -2, 1, -8}, {{0, 1}, {1, 2}, {2, 3}, {3, 4}, {4, 5}}});
    EXPECT_EQ(worst.bytes, 9);
    EXPECT_EQ(worst.operation(), 2U);
    EXPECT_THAT(worst.order, ::testing::ElementsAre(0, 1, 2, 3, 4, 5));
}

TEST(WorstPeak, NothingAllocatedStandsBeforeTheFirstOperation) {
    const WorstPeak worst = worst_peak({{0, 0, -3}, {{0, 1}}});
    EXPECT_EQ(worst.bytes, 0);
    EXPECT_EQ(worst.operations_at_peak, 0U);
    EXPECT_EQ(worst.operation(), std::nullopt);
}

TEST(WorstPeak, OfAPipelineIsTheHeaviestBucketsThatShareTheSlots) {
    EXPECT_EQ(worst_peak(swap_pipeline(std::vector<std::int64_t>(100, 256), 3)).bytes, 3 * 256);
    EXPECT_EQ(worst_peak(swap_pipeline({1, 8, 2, 4, 16, 1, 1}, 2)).bytes, 20);
    EXPECT_EQ(worst_peak(swap_pipeline({1, 2, 4}, 16)).bytes, 7);
}

TEST(WorstPeak, AForgottenWaitShows) {
    PeakGraph graph = swap_pipeline(std::vector<std::int64_t>(10, 256), 2);
    std::erase_if(graph.edges, [](const OrderEdge& edge) { return edge.after == 40; });
    graph.edges.push_back({36, 40});
    EXPECT_EQ(worst_peak(graph).bytes, 3 * 256);
}

TEST(WorstPeak, EqualsBruteForceOnSmallGraphs) {
    Rng rng(1);
    for (int round = 0; round < 3000; ++round) {
        const PeakGraph graph = random_peak_graph(rng, round % 20 == 0 ? 15 : 11);
        const auto order = random_order(rng, graph);
        const BruteForce expected = try_all_states(graph, order);
        const WorstPeak worst = worst_peak(graph);
        ASSERT_EQ(worst.bytes, expected.bytes) << "round " << round;
        ASSERT_EQ(state_at_peak(worst), expected.smallest_state) << "round " << round;
    }
}

TEST(WorstPeak, TheSolverAloneEqualsBruteForceOnSmallGraphs) {
    Rng rng(2);
    for (int round = 0; round < 3000; ++round) {
        const PeakGraph graph = random_peak_graph(rng, round % 20 == 0 ? 15 : 11);
        const auto order = random_order(rng, graph);
        const BruteForce expected = try_all_states(graph, order);
        const std::vector<bool> state = heaviest_closed_set(in_order(graph, order));
        for (std::size_t place = 0; place < order.size(); ++place) {
            ASSERT_EQ(state[place], expected.smallest_state[order[place]]) << "round " << round;
        }
    }
}

TEST(WorstPeak, ItsWitnessIsLegalAndReachesIt) {
    Rng rng(3);
    for (int round = 0; round < 500; ++round) {
        const PeakGraph graph = random_peak_graph(rng, 200);
        const WorstPeak worst = worst_peak(graph);
        const std::vector<std::int64_t> occupied = occupied_along(graph, worst.order);
        const std::size_t at = worst.operations_at_peak;
        ASSERT_EQ(at == 0 ? 0 : occupied.at(at - 1), worst.bytes) << "round " << round;
        ASSERT_TRUE(at == 0 || graph.weight_bytes[worst.operation().value()] > 0);
    }
}

TEST(WorstPeak, NoScheduleExceedsIt) {
    Rng rng(4);
    for (int round = 0; round < 500; ++round) {
        const PeakGraph graph = random_peak_graph(rng, 60);
        const std::int64_t worst_bytes = worst_peak(graph).bytes;
        for (int schedule = 0; schedule < 5; ++schedule) {
            for (const std::int64_t bytes : occupied_along(graph, random_order(rng, graph))) {
                ASSERT_LE(bytes, worst_bytes) << "round " << round;
            }
        }
    }
}

TEST(WorstPeak, OneMoreEdgeNeverRaisesIt) {
    Rng rng(5);
    for (int round = 0; round < 1000; ++round) {
        PeakGraph graph = random_peak_graph(rng, 40);
        const auto order = random_order(rng, graph);
        if (order.size() < 2) {
            continue;
        }
        const std::int64_t bytes = worst_peak(graph).bytes;
        const std::uint64_t later = 1 + rng.below(order.size() - 1);
        graph.edges.push_back({order[rng.below(later)], order[later]});
        ASSERT_LE(worst_peak(graph).bytes, bytes) << "round " << round;
    }
}

TEST(WorstPeak, OfTheExampleInTheManual) {
    PeakGraph graph{{256, 0, -256, 256}, {{0, 1}, {1, 2}, {0, 3}}};
    EXPECT_EQ(worst_peak(graph).bytes, 512);
    EXPECT_EQ(worst_peak(graph).operation(), 3U);
    EXPECT_THAT(worst_peak(graph).order, ::testing::ElementsAre(0, 3, 1, 2));
    graph.edges.push_back({2, 3});
    EXPECT_EQ(worst_peak(graph).bytes, 256);
}

TEST(WorstPeak, NumbersOfOperationsDoNotMatter) {
    PeakGraph graph{{-256, 0, 256, 512}, {{2, 1}, {1, 0}, {0, 3}}};
    EXPECT_THAT(worst_peak(graph).order, ::testing::ElementsAre(2, 1, 0, 3));
    EXPECT_EQ(worst_peak(graph).bytes, 512);
}

TEST(WorstPeak, RefusesAnEdgeToAnOperationThatDoesNotExist) {
    for (const OrderEdge edge : {OrderEdge{0, 2}, OrderEdge{2, 0}}) {
        try {
            static_cast<void>(worst_peak({{1, -1}, {edge}}));
            FAIL() << "not refused";
        } catch (const ArgumentError& error) {
            EXPECT_THAT(error.fields(),
                        ::testing::Contains(ErrorField{"after", std::to_string(edge.after)}));
        }
    }
}

TEST(WorstPeak, RefusesACycle) {
    EXPECT_THROW(static_cast<void>(worst_peak({{1}, {{0, 0}}})), ArgumentError);
    EXPECT_THROW(static_cast<void>(worst_peak({{1, 2, 3}, {{0, 1}, {1, 2}, {2, 1}}})),
                 ArgumentError);
}

TEST(WorstPeak, RefusesWeightsWhoseSumLeaves64Bits) {
    EXPECT_EQ(worst_peak({{most_bytes, -most_bytes}, {{0, 1}}}).bytes, most_bytes);
    EXPECT_THROW(static_cast<void>(worst_peak({{most_bytes, 1}, {}})), ArgumentError);
    EXPECT_THROW(static_cast<void>(worst_peak({{-most_bytes, -1}, {}})), ArgumentError);
}

}  // namespace
}  // namespace swaplab::sim
