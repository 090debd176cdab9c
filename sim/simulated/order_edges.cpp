#include "simulated/order_edges.hpp"

#include "swaplab/sim/mutant.hpp"

#include <cstddef>

namespace swaplab::sim {

std::uint32_t OrderEdges::add(std::uint64_t id) {
    const std::uint32_t node = nodes_++;
    const OperationRecord& record = log_[id];
    while (host_waits_ < log_.host_waits().size() &&
           log_.host_waits()[host_waits_].before_operation <= id) {
        ++host_waits_;
    }
    if (record.sequence == 0) {
        follow_last(host_, node);
        follow_host(host_, node);
        host_.nodes.push_back(node);
        return node;
    }
    Lane& lane = lane_of(record.lane);
    if (lane.nodes.empty()) {
        lane.first_sequence = record.sequence;
    } else if (!SWAPLAB_MUTANT("peak.stream_edge")) {
        follow_last(lane, node);
    }
    follow_host(lane, node);
    const bool frees = record.kind == OperationKind::free;
    if (frees ? !SWAPLAB_MUTANT("peak.free_edge") : !SWAPLAB_MUTANT("peak.event_edge")) {
        follow(record.after(), node);
    }
    lane.nodes.push_back(node);
    return node;
}

OrderEdges::Lane& OrderEdges::lane_of(LaneId id) {
    if (id >= lanes_.size()) {
        lanes_.resize(id + std::size_t{1}, Lane{0, {}, first_host_wait_});
    }
    return lanes_[id];
}

void OrderEdges::follow_last(const Lane& lane, std::uint32_t node) {
    if (!lane.nodes.empty()) {
        edges_.push_back({lane.nodes.back(), node});
    }
}

void OrderEdges::follow_host(Lane& lane, std::uint32_t node) {
    for (; lane.host_waits < host_waits_; ++lane.host_waits) {
        if (!SWAPLAB_MUTANT("peak.host_edge")) {
            follow(log_.host_waits()[lane.host_waits].mark, node);
        }
    }
}

void OrderEdges::follow(Epoch epoch, std::uint32_t node) {
    if (epoch.lane >= lanes_.size()) {
        return;
    }
    const Lane& lane = lanes_[epoch.lane];
    if (!lane.nodes.empty() && epoch.sequence >= lane.first_sequence) {
        edges_.push_back({lane.nodes[epoch.sequence - lane.first_sequence], node});
    }
}

}  // namespace swaplab::sim
