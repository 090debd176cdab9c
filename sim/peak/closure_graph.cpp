#include "peak/closure_graph.hpp"

#include "swaplab/sim/assert.hpp"

#include <limits>
#include <numeric>

namespace swaplab::sim {

Predecessors::Predecessors(std::size_t node_count, std::span<const OrderEdge> edges)
    : starts_(node_count + 1), nodes_(edges.size()) {
    SWAPLAB_ASSERT(edges.size() < std::numeric_limits<std::uint32_t>::max(), "2^32 edges or more");
    for (const OrderEdge& edge : edges) {
        ++starts_[edge.after];
    }
    std::partial_sum(starts_.begin(), starts_.end(), starts_.begin());
    for (auto edge = edges.rbegin(); edge != edges.rend(); ++edge) {
        nodes_[--starts_[edge->after]] = edge->before;
    }
}

}  // namespace swaplab::sim
