#include "peak/contraction.hpp"

#include "swaplab/sim/mutant.hpp"

#include <numeric>
#include <utility>

namespace swaplab::sim {
namespace {

/// Joins nodes of one graph. The node one past the last is "settled".
class Joiner {
  public:
    Joiner(ClosureGraph graph, ZeroWeights zero_weights)
        : graph_(std::move(graph)),
          joined_(graph_.size() + std::size_t{1}),
          only_(graph_.size()),
          gains_(graph_.size()),
          zero_weights_(zero_weights) {
        std::iota(joined_.begin(), joined_.end(), 0U);
        for (std::uint32_t node = 0; node < graph_.size(); ++node) {
            gains_[node] = graph_.weights[node] > 0;
        }
    }

    /// In ascending order, so that chains of gains collapse in one pass.
    void join_all() {
        for (std::uint32_t node = 0; node < settled(); ++node) {
            only_[node] = only_predecessor(node);
            std::uint32_t end = node;
            while (end != settled() && joins(end)) {
                end = join(end);
            }
        }
    }

    [[nodiscard]] Contraction finish() {
        Contraction contraction;
        number_nodes(contraction);
        reverse_edges(contraction);
        return contraction;
    }

  private:
    static constexpr auto several = std::numeric_limits<std::uint32_t>::max();

    [[nodiscard]] std::uint32_t settled() const noexcept { return graph_.size(); }

    [[nodiscard]] std::uint32_t representative(std::uint32_t node) {
        while (joined_[node] != node) {
            joined_[node] = joined_[joined_[node]];
            node = joined_[node];
        }
        return node;
    }

    /// The one node that `node` waits for, settled() when there is none left, or `several`.
    [[nodiscard]] std::uint32_t only_predecessor(std::uint32_t node) {
        std::uint32_t only = settled();
        for (const std::uint32_t predecessor : graph_.predecessors.of(node)) {
            const std::uint32_t found = representative(predecessor);
            if (found == settled() || found == only) {
                continue;
            }
            if (only != settled() && !SWAPLAB_MUTANT("peak.second_predecessor")) {
                return several;
            }
            only = found;
        }
        return only;
    }

    [[nodiscard]] bool joins(std::uint32_t node) const {
        const std::int64_t weight = graph_.weights[node];
        const bool zero_joins = zero_weights_ == ZeroWeights::always || !gains_[node] ||
                                SWAPLAB_MUTANT("peak.zero_joins");
        return only_[node] != several && (weight > 0 || (weight == 0 && zero_joins));
    }

    /// Returns what `node` has joined.
    std::uint32_t join(std::uint32_t node) {
        const std::uint32_t target = representative(only_[node]);
        joined_[node] = target;
        if (target != settled()) {
            graph_.weights[target] += graph_.weights[node];
            gains_[target] = gains_[target] || gains_[node];
        }
        return target;
    }

    void number_nodes(Contraction& contraction) {
        contraction.new_node.assign(graph_.size(), Contraction::settled);
        for (std::uint32_t node = graph_.size(); node-- > 0;) {
            if (joined_[node] == node) {
                contraction.new_node[node] = contraction.reversed.size();
                contraction.reversed.weights.push_back(-graph_.weights[node]);
            }
        }
        for (std::uint32_t node = 0; node < graph_.size(); ++node) {
            const std::uint32_t found = representative(node);
            if (found != settled()) {
                contraction.new_node[node] = contraction.new_node[found];
            }
        }
    }

    void reverse_edges(Contraction& contraction) const {
        std::vector<OrderEdge> edges;
        std::vector<std::uint32_t> last(contraction.reversed.size(), Contraction::settled);
        for (std::uint32_t node = 0; node < graph_.size(); ++node) {
            const std::uint32_t before = contraction.new_node[node];
            for (const std::uint32_t predecessor : graph_.predecessors.of(node)) {
                const std::uint32_t after = contraction.new_node[predecessor];
                if (after != Contraction::settled && after != before && last[after] != before) {
                    last[after] = before;
                    edges.push_back({before, after});
                }
            }
        }
        contraction.reversed.predecessors = Predecessors(contraction.reversed.size(), edges);
    }

    ClosureGraph graph_;
    std::vector<std::uint32_t> joined_;
    std::vector<std::uint32_t> only_;
    std::vector<bool> gains_;
    ZeroWeights zero_weights_;
};

}  // namespace

Contraction contract_gains(ClosureGraph graph, ZeroWeights zero_weights) {
    Joiner joiner(std::move(graph), zero_weights);
    joiner.join_all();
    return joiner.finish();
}

}  // namespace swaplab::sim
