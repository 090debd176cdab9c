/// worst_peak() against another algorithm of other authors, on graphs too large for brute force.

#include "random_peak_graph.hpp"

#include "swaplab/sim/worst_peak.hpp"

#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/boykov_kolmogorov_max_flow.hpp>

#include <limits>

namespace swaplab::sim {
namespace {

using Traits = boost::adjacency_list_traits<boost::vecS, boost::vecS, boost::directedS>;
using EdgeProperties = boost::property<
    boost::edge_capacity_t, std::int64_t,
    boost::property<boost::edge_residual_capacity_t, std::int64_t,
                    boost::property<boost::edge_reverse_t, Traits::edge_descriptor>>>;
using NodeProperties = boost::property<
    boost::vertex_color_t, boost::default_color_type,
    boost::property<boost::vertex_distance_t, long,
                    boost::property<boost::vertex_predecessor_t, Traits::edge_descriptor>>>;
using FlowGraph = boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS, NodeProperties,
                                        EdgeProperties>;

void add_edge_pair(FlowGraph& flow, std::size_t from, std::size_t to, std::int64_t capacity) {
    const auto there = boost::add_edge(from, to, flow).first;
    const auto back = boost::add_edge(to, from, flow).first;
    put(boost::edge_capacity, flow, there, capacity);
    put(boost::edge_capacity, flow, back, 0);
    put(boost::edge_reverse, flow, there, back);
    put(boost::edge_reverse, flow, back, there);
}

std::int64_t worst_peak_by_minimum_cut(const PeakGraph& graph) {
    const std::size_t source = graph.weight_bytes.size();
    const std::size_t sink = source + 1;
    FlowGraph flow(source + 2);
    std::int64_t gains = 0;
    for (std::size_t node = 0; node < source; ++node) {
        const std::int64_t weight = graph.weight_bytes[node];
        gains += std::max<std::int64_t>(weight, 0);
        if (weight != 0) {
            add_edge_pair(flow, weight > 0 ? source : node, weight > 0 ? node : sink,
                          std::abs(weight));
        }
    }
    for (const OrderEdge& edge : graph.edges) {
        add_edge_pair(flow, edge.after, edge.before, std::int64_t{1} << 60);
    }
    return gains - boost::boykov_kolmogorov_max_flow(flow, source, sink);
}

TEST(WorstPeak, EqualsAMinimumCutOnLargerGraphs) {
    Rng rng(6);
    for (const std::uint32_t operations_max : {30U, 300U, 3000U}) {
        for (int round = 0; round < 60; ++round) {
            const PeakGraph graph = random_peak_graph(rng, operations_max);
            ASSERT_EQ(worst_peak(graph).bytes, worst_peak_by_minimum_cut(graph))
                << operations_max << ", round " << round;
        }
    }
}

}  // namespace
}  // namespace swaplab::sim
