#include "swaplab/sim/worst_peak.hpp"

#include "peak/closure_graph.hpp"
#include "peak/contraction.hpp"
#include "peak/pseudoflow.hpp"

#include "swaplab/sim/assert.hpp"
#include "swaplab/sim/error.hpp"
#include "swaplab/sim/mutant.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

namespace swaplab::sim {
namespace {

void check_edges(const PeakGraph& graph) {
    const std::size_t count = graph.weight_bytes.size();
    SWAPLAB_ASSERT(count < std::numeric_limits<std::uint32_t>::max() - 2, "2^32 operations");
    for (const OrderEdge& edge : graph.edges) {
        const std::uint32_t last = std::max(edge.before, edge.after);
        if (last >= count && !SWAPLAB_MUTANT("peak.edge_range")) {
            throw ArgumentError(
                fmt::format("worst_peak refused: an edge orders operation {} before {}, but there "
                            "are {} operations; give each operation a weight, 0 if it holds no "
                            "memory",
                            edge.before, edge.after, count),
                {{"operation", "worst_peak"},
                 {"before", std::to_string(edge.before)},
                 {"after", std::to_string(edge.after)}});
        }
    }
}

/// Gains and losses each fit into 64 bits; then so does the sum over any set.
void check_weights(const PeakGraph& graph) {
    constexpr std::uint64_t most = std::numeric_limits<std::int64_t>::max();
    std::uint64_t gained = 0;
    std::uint64_t lost = 0;
    for (const std::int64_t weight : graph.weight_bytes) {
        std::uint64_t& sum = weight > 0 ? gained : lost;
        const auto bits = static_cast<std::uint64_t>(weight);
        sum += weight > 0 ? bits : std::uint64_t{0} - bits;
        if (sum > most && !SWAPLAB_MUTANT("peak.weight_range")) {
            throw ArgumentError(
                fmt::format("worst_peak refused: weights of the sign of {} B sum to more than 2^63 "
                            "- 1 B; give sizes in bytes",
                            weight),
                {{"operation", "worst_peak"}, {"weight_bytes", std::to_string(weight)}});
        }
    }
}

/// All operations, each after its predecessors: as numbered, with missing predecessors moved up.
class TopologicalOrder {
  public:
    explicit TopologicalOrder(const Predecessors& predecessors)
        : predecessors_(predecessors),
          states_(predecessors.node_count(), State::unseen),
          next_edges_(predecessors.node_count()) {
        order_.reserve(predecessors.node_count());
        for (std::uint32_t node = 0; node < predecessors.node_count(); ++node) {
            visit(node);
        }
    }

    [[nodiscard]] std::vector<std::uint32_t> take() && { return std::move(order_); }

  private:
    enum class State : std::uint8_t { unseen, open, done };

    void visit(std::uint32_t last) {
        open(last);
        while (!path_.empty()) {
            const std::uint32_t node = path_.back();
            const auto before = predecessors_.of(node);
            if (next_edges_[node] < before.size()) {
                const std::uint32_t predecessor = before[next_edges_[node]++];
                if (states_[predecessor] == State::open && !SWAPLAB_MUTANT("peak.cycle")) {
                    refuse_cycle(predecessor, node);
                }
                open(predecessor);
            } else {
                states_[node] = State::done;
                order_.push_back(node);
                path_.pop_back();
            }
        }
    }

    void open(std::uint32_t node) {
        if (states_[node] == State::unseen) {
            states_[node] = State::open;
            path_.push_back(node);
        }
    }

    [[noreturn]] static void refuse_cycle(std::uint32_t before, std::uint32_t after) {
        throw ArgumentError(
            fmt::format("worst_peak refused: operation {} is ordered before {} and after it; order "
                        "edges must come from one run",
                        before, after),
            {{"operation", "worst_peak"},
             {"before", std::to_string(before)},
             {"after", std::to_string(after)}});
    }

    const Predecessors& predecessors_;
    std::vector<State> states_;
    std::vector<std::uint32_t> next_edges_;
    std::vector<std::uint32_t> path_;  ///< each is waited for by the one before
    std::vector<std::uint32_t> order_;
};

/// Node i is operation order[i].
ClosureGraph closure_graph(const PeakGraph& graph, const std::vector<std::uint32_t>& order) {
    std::vector<std::uint32_t> places(order.size());
    ClosureGraph nodes;
    nodes.weights.reserve(order.size());
    for (std::uint32_t place = 0; place < order.size(); ++place) {
        places[order[place]] = place;
        nodes.weights.push_back(graph.weight_bytes[order[place]]);
    }
    std::vector<OrderEdge> edges;
    edges.reserve(graph.edges.size());
    for (const OrderEdge& edge : graph.edges) {
        edges.push_back({places[edge.before], places[edge.after]});
    }
    nodes.predecessors = Predecessors(order.size(), edges);
    return nodes;
}

/// The smallest heaviest closed set, found in a contracted graph.
std::vector<bool> worst_state(const ClosureGraph& graph) {
    auto gains = contract_gains(graph, ZeroWeights::unless_made_of_gains);
    const auto losses = contract_gains(std::move(gains.reversed), ZeroWeights::always);
    const std::vector<bool> contracted = heaviest_closed_set(losses.reversed);
    const auto holds = [&](std::uint32_t node) {
        const std::uint32_t once = gains.new_node[node];
        if (once == Contraction::settled) {
            return true;
        }
        const std::uint32_t twice = losses.new_node[once];
        return twice != Contraction::settled && contracted[twice];
    };
    std::vector<bool> state(graph.size());
    for (std::uint32_t node = graph.size(); node-- > 0;) {
        state[node] = state[node] || (graph.weights[node] > 0 && holds(node));
        if (state[node]) {
            for (const std::uint32_t predecessor : graph.predecessors.of(node)) {
                state[predecessor] = true;
            }
        }
    }
    return state;
}

}  // namespace

WorstPeak worst_peak(const PeakGraph& graph) {
    check_edges(graph);
    check_weights(graph);
    const Predecessors predecessors(graph.weight_bytes.size(), graph.edges);
    const auto order = TopologicalOrder(predecessors).take();
    const std::vector<bool> state = worst_state(closure_graph(graph, order));
    WorstPeak worst;
    worst.order.reserve(order.size());
    std::vector<std::uint32_t> later;
    for (std::uint32_t place = 0; place < order.size(); ++place) {
        if (state[place]) {
            worst.order.push_back(order[place]);
            worst.bytes += graph.weight_bytes[order[place]];
        } else {
            later.push_back(order[place]);
        }
    }
    worst.operations_at_peak = worst.order.size();
    worst.order.insert(worst.order.end(), later.begin(), later.end());
    return worst;
}

}  // namespace swaplab::sim
