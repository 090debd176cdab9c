#include "simulated/device_timeline.hpp"

#include "simulated/order_edges.hpp"

#include <cstddef>

namespace swaplab::sim {
namespace {

/// Operations that occupy an engine, and for how many bytes.
class Engines {
  public:
    explicit Engines(const std::vector<std::uint64_t>& launch_bytes)
        : launch_bytes_(launch_bytes) {}

    [[nodiscard]] TimedOperation next(const OperationRecord& record) {
        switch (record.kind) {
            case OperationKind::copy_h2d:
            case OperationKind::copy_h2d_pageable:
                return {Engine::upload, record.bytes};
            case OperationKind::copy_d2h:
            case OperationKind::copy_d2h_pageable:
                return {Engine::download, record.bytes};
            case OperationKind::copy_d2d:
                return {Engine::compute, 2 * record.bytes};
            case OperationKind::fill:
                return {Engine::compute, record.bytes};
            case OperationKind::launch:
                return {Engine::compute, launch_bytes_[launches_++]};
            default:
                return {};
        }
    }

  private:
    const std::vector<std::uint64_t>& launch_bytes_;
    std::size_t launches_ = 0;
};

}  // namespace

TimedGraph timed_graph(const OperationLog& log, const std::vector<std::uint64_t>& launch_bytes) {
    TimedGraph graph;
    graph.operations.reserve(log.size());
    Engines engines(launch_bytes);
    OrderEdges edges(log);
    for (std::uint64_t id = 0; id < log.size(); ++id) {
        graph.operations.push_back(engines.next(log[id]));
        edges.add(id);
    }
    graph.edges = edges.take();
    return graph;
}

}  // namespace swaplab::sim
