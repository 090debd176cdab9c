#include "peak/pseudoflow.hpp"

#include "swaplab/sim/mutant.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>

namespace swaplab::sim {
namespace {

constexpr auto no_node = std::numeric_limits<std::uint32_t>::max();
constexpr auto finished_label = std::numeric_limits<std::uint32_t>::max();

/// D. S. Hochbaum, "The pseudoflow algorithm: a new algorithm for the maximum-flow problem",
/// Operations Research 56 (2008), highest label first.
///
/// Gains flow to the losses among their predecessors, without limit in that direction. Only edges
/// of a forest carry flow. Roots alone hold an excess: trees with excess > 0 are strong and look
/// for an edge into another tree, along which the excess moves on. Labels bound the distance to a
/// loss that can still take something from below; they grow towards the leaves, by at most 1 an
/// edge.
class Pseudoflow {
  public:
    explicit Pseudoflow(const ClosureGraph& graph)
        : graph_(graph),
          nodes_(graph.size()),
          strong_roots_(graph.size() + std::size_t{2}, no_node),
          label_counts_(graph.size() + std::size_t{2}) {
        for (std::uint32_t node = 0; node < graph.size(); ++node) {
            nodes_[node].excess = graph.weights[node];
            nodes_[node].label = graph.weights[node] > 0 ? 1 : 0;
            ++label_counts_[nodes_[node].label];
            if (nodes_[node].excess > 0) {
                add_strong_root(node);
            }
        }
    }

    void solve() {
        for (;;) {
            while (highest_ > 0 && strong_roots_[highest_] == no_node) {
                --highest_;
            }
            if (strong_roots_[highest_] == no_node) {
                return;
            }
            if (highest_ == 0) {
                raise_from_zero();
            } else if (label_counts_[highest_ - 1] == 0) {
                finish(take_strong_root());
            } else {
                process(take_strong_root());
            }
        }
    }

    /// The trees whose excess no loss takes. No smaller set is as heavy: excess at a root could go
    /// to each node of its tree, because an edge up carries flow from the moment it is hung, and an
    /// edge down leads to a predecessor.
    [[nodiscard]] std::vector<bool> finished() const {
        std::vector<bool> found(nodes_.size());
        for (std::uint32_t node = 0; node < nodes_.size(); ++node) {
            found[node] = nodes_[node].label == finished_label;
        }
        return found;
    }

  private:
    struct Node {
        std::uint32_t parent = no_node;
        std::uint32_t first_child = no_node;
        std::uint32_t next_sibling = no_node;
        std::uint32_t previous_sibling = no_node;
        std::uint32_t next_strong_root = no_node;
        std::uint32_t unvisited_child = no_node;  ///< where the search of process() goes on
        std::uint32_t next_edge = 0;              ///< predecessors before it have larger labels
        std::uint32_t label = 0;
        std::int64_t excess = 0;            ///< of a root
        std::int64_t flow = 0;              ///< on the edge between this node and its parent
        bool parent_is_predecessor = true;  ///< flow goes up; otherwise down
    };

    void add_strong_root(std::uint32_t root) {
        const std::uint32_t label = nodes_[root].label;
        nodes_[root].next_strong_root = strong_roots_[label];
        strong_roots_[label] = root;
        highest_ = std::max(highest_, label);
    }

    std::uint32_t take_strong_root() {
        const std::uint32_t root = strong_roots_[highest_];
        strong_roots_[highest_] = nodes_[root].next_strong_root;
        return root;
    }

    void set_label(std::uint32_t node, std::uint32_t label) {
        --label_counts_[nodes_[node].label];
        nodes_[node].label = label;
        ++label_counts_[label];
    }

    void raise_from_zero() {
        while (strong_roots_[0] != no_node) {
            const std::uint32_t root = strong_roots_[0];
            strong_roots_[0] = nodes_[root].next_strong_root;
            set_label(root, 1);
            add_strong_root(root);
        }
    }

    /// No node of the next lower label is left. As labels grow by at most 1 along an edge, nothing
    /// takes the excess of `root`.
    void finish(std::uint32_t root) {
        std::vector<std::uint32_t> open{root};
        while (!open.empty()) {
            const std::uint32_t node = open.back();
            open.pop_back();
            --label_counts_[nodes_[node].label];
            nodes_[node].label = finished_label;
            for (std::uint32_t child = nodes_[node].first_child; child != no_node;
                 child = nodes_[child].next_sibling) {
                open.push_back(child);
            }
        }
    }

    /// Looks among the nodes with the label of `root` for an edge to a lower one. Without any, they
    /// all rise.
    void process(std::uint32_t root) {
        std::uint32_t node = root;
        nodes_[node].unvisited_child = nodes_[node].first_child;
        while (node != no_node) {
            if (const auto weak = lower_predecessor(node)) {
                hang(root, node, *weak);
                push_excess(root);
                return;
            }
            node = next_in_search(node);
        }
        add_strong_root(root);
    }

    [[nodiscard]] std::optional<std::uint32_t> lower_predecessor(std::uint32_t node) {
        const auto predecessors = graph_.predecessors.of(node);
        for (std::uint32_t& edge = nodes_[node].next_edge; edge < predecessors.size(); ++edge) {
            if (nodes_[predecessors[edge]].label + 1 == nodes_[node].label) {
                return predecessors[edge];
            }
        }
        return std::nullopt;
    }

    /// Depth first; nodes whose children of the same label are done rise on the way.
    std::uint32_t next_in_search(std::uint32_t node) {
        while (node != no_node) {
            Node& here = nodes_[node];
            while (here.unvisited_child != no_node) {
                const std::uint32_t child = here.unvisited_child;
                here.unvisited_child = nodes_[child].next_sibling;
                if (nodes_[child].label == here.label) {
                    nodes_[child].unvisited_child = nodes_[child].first_child;
                    return child;
                }
            }
            set_label(node, here.label + 1);
            here.next_edge = 0;
            node = here.parent;
        }
        return no_node;
    }

    /// Makes `node` the root of its tree, whose root was `root`, and `weak` its parent.
    void hang(std::uint32_t root, std::uint32_t node, std::uint32_t weak) {
        std::uint32_t parent = weak;
        std::int64_t flow = 0;
        bool parent_is_predecessor = true;
        for (;;) {
            const std::uint32_t old_parent = nodes_[node].parent;
            const std::int64_t old_flow = nodes_[node].flow;
            const bool was_predecessor = nodes_[node].parent_is_predecessor;
            if (node != root) {
                detach(node);
            }
            attach(node, parent);
            nodes_[node].flow = flow;
            nodes_[node].parent_is_predecessor = parent_is_predecessor;
            if (node == root) {
                return;
            }
            parent = node;
            node = old_parent;
            flow = old_flow;
            parent_is_predecessor = !was_predecessor;
        }
    }

    void attach(std::uint32_t node, std::uint32_t parent) {
        const std::uint32_t sibling = nodes_[parent].first_child;
        nodes_[node].parent = parent;
        nodes_[node].next_sibling = sibling;
        nodes_[node].previous_sibling = no_node;
        nodes_[parent].first_child = node;
        if (sibling != no_node) {
            nodes_[sibling].previous_sibling = node;
        }
    }

    void detach(std::uint32_t node) {
        const Node& here = nodes_[node];
        if (here.previous_sibling == no_node) {
            nodes_[here.parent].first_child = here.next_sibling;
        } else {
            nodes_[here.previous_sibling].next_sibling = here.next_sibling;
        }
        if (here.next_sibling != no_node) {
            nodes_[here.next_sibling].previous_sibling = here.previous_sibling;
        }
        nodes_[node].parent = no_node;
    }

    /// Moves the excess of the former root `node` to the root of its new tree. Where less flow goes
    /// down than would have to come back up, the tree splits and the rest stays.
    void push_excess(std::uint32_t node) {
        bool was_strong = true;
        while (nodes_[node].excess > 0 && nodes_[node].parent != no_node) {
            const std::uint32_t parent = nodes_[node].parent;
            was_strong = nodes_[parent].excess > 0;
            nodes_[parent].excess += take_excess(node);
            node = parent;
        }
        if (nodes_[node].excess > 0 && !was_strong) {
            add_strong_root(node);
        }
    }

    /// Returns how much of the excess of `node` goes to its parent.
    std::int64_t take_excess(std::uint32_t node) {
        Node& here = nodes_[node];
        if (here.parent_is_predecessor) {
            here.flow += here.excess;
            return std::exchange(here.excess, 0);
        }
        const std::int64_t moved =
            SWAPLAB_MUTANT("peak.push_past_flow") ? here.excess : std::min(here.excess, here.flow);
        here.flow -= moved;
        here.excess -= moved;
        if (here.excess > 0) {
            detach(node);
            add_strong_root(node);
        }
        return moved;
    }

    const ClosureGraph& graph_;
    std::vector<Node> nodes_;
    std::vector<std::uint32_t> strong_roots_;  ///< by label, the first of a list
    std::vector<std::uint32_t> label_counts_;
    std::uint32_t highest_ = 0;  ///< no strong root has a larger label
};

}  // namespace

std::vector<bool> heaviest_closed_set(const ClosureGraph& graph) {
    Pseudoflow pseudoflow(graph);
    pseudoflow.solve();
    return pseudoflow.finished();
}

}  // namespace swaplab::sim
