#include "random_peak_graph.hpp"

#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <utility>

namespace swaplab::sim {
namespace {

std::vector<std::uint32_t> shuffled_numbers(Rng& rng, std::size_t count) {
    std::vector<std::uint32_t> numbers(count);
    std::iota(numbers.begin(), numbers.end(), 0U);
    for (std::size_t i = count; i > 1; --i) {
        std::swap(numbers[i - 1], numbers[rng.below(i)]);
    }
    return numbers;
}

std::int64_t weight_within(Rng& rng, std::int64_t most) {
    return static_cast<std::int64_t>(rng.below(2 * static_cast<std::uint64_t>(most) + 1)) - most;
}

void add_allocations(Rng& rng, PeakGraph& graph) {
    std::vector<std::uint32_t> live;
    for (std::uint32_t node = 0; node < graph.weight_bytes.size(); ++node) {
        const std::uint64_t kind = rng.below(3);
        if (kind == 0) {
            graph.weight_bytes[node] = static_cast<std::int64_t>(1 + rng.below(8)) * 256;
            live.push_back(node);
        } else if (kind == 1 && !live.empty()) {
            std::swap(live.back(), live[rng.below(live.size())]);
            graph.weight_bytes[node] = -graph.weight_bytes[live.back()];
            graph.edges.push_back({live.back(), node});
            live.pop_back();
        }
    }
}

}  // namespace

PeakGraph random_peak_graph(Rng& rng, std::uint32_t operations_max) {
    const auto count = static_cast<std::uint32_t>(rng.below(operations_max + std::uint64_t{1}));
    PeakGraph graph;
    graph.weight_bytes.resize(count);
    if (rng.below(2) == 0) {
        add_allocations(rng, graph);
    } else {
        const std::int64_t most = rng.below(2) == 0 ? 3 : 1 << 20;
        std::generate(graph.weight_bytes.begin(), graph.weight_bytes.end(),
                      [&] { return weight_within(rng, most); });
    }
    const std::uint64_t degree = rng.below(4);
    const std::uint64_t window = 1 + rng.below(count + std::uint64_t{1});
    for (std::uint32_t node = 1; node < count; ++node) {
        for (std::uint64_t edge = 0; edge < degree; ++edge) {
            const std::uint64_t back = 1 + rng.below(std::min<std::uint64_t>(window, node));
            graph.edges.push_back({static_cast<std::uint32_t>(node - back), node});
        }
    }
    const std::vector<std::uint32_t> numbers = shuffled_numbers(rng, count);
    PeakGraph shuffled{std::vector<std::int64_t>(count), graph.edges};
    for (std::uint32_t node = 0; node < count; ++node) {
        shuffled.weight_bytes[numbers[node]] = graph.weight_bytes[node];
    }
    for (OrderEdge& edge : shuffled.edges) {
        edge = {numbers[edge.before], numbers[edge.after]};
    }
    return shuffled;
}

std::vector<std::uint32_t> random_order(Rng& rng, const PeakGraph& graph) {
    const std::size_t count = graph.weight_bytes.size();
    std::vector<std::size_t> waiting_for(count);
    for (const OrderEdge& edge : graph.edges) {
        ++waiting_for[edge.after];
    }
    std::vector<std::uint32_t> ready;
    std::vector<std::uint32_t> order;
    for (std::uint32_t node = 0; node < count; ++node) {
        if (waiting_for[node] == 0) {
            ready.push_back(node);
        }
    }
    while (!ready.empty()) {
        std::swap(ready.back(), ready[rng.below(ready.size())]);
        order.push_back(ready.back());
        ready.pop_back();
        for (const OrderEdge& edge : graph.edges) {
            if (edge.before == order.back() && --waiting_for[edge.after] == 0) {
                ready.push_back(edge.after);
            }
        }
    }
    return order;
}

std::vector<std::int64_t> occupied_along(const PeakGraph& graph,
                                         const std::vector<std::uint32_t>& order) {
    constexpr auto never = std::size_t(-1);
    std::vector<std::size_t> places(graph.weight_bytes.size(), never);
    std::vector<std::int64_t> occupied;
    std::int64_t bytes = 0;
    for (std::size_t place = 0; place < order.size(); ++place) {
        if (std::exchange(places.at(order[place]), place) != never) {
            throw std::logic_error("an operation runs twice");
        }
        bytes += graph.weight_bytes[order[place]];
        occupied.push_back(bytes);
    }
    if (order.size() != graph.weight_bytes.size()) {
        throw std::logic_error("an operation does not run");
    }
    for (const OrderEdge& edge : graph.edges) {
        if (places[edge.before] >= places[edge.after]) {
            throw std::logic_error("an operation runs before its predecessor");
        }
    }
    return occupied;
}

}  // namespace swaplab::sim
