#include "simulated/device_peak.hpp"

#include "simulated/allocations.hpp"
#include "simulated/clock.hpp"
#include "simulated/order_edges.hpp"

#include "swaplab/sim/units.hpp"
#include "swaplab/sim/worst_peak.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace swaplab::sim {
namespace {

std::int64_t weight_of(const OperationRecord& record, Size size) {
    const auto bytes = static_cast<std::int64_t>(
        size == Size::requested ? record.bytes : round_up(record.bytes, device_alignment_bytes));
    return record.kind == OperationKind::allocate ? bytes
           : record.kind == OperationKind::free   ? -bytes
                                                  : 0;
}

/// Of each operation, whether it has run at `begin` under every schedule: what the host had waited
/// for, and what that is ordered after. Later ones come first, so one pass finds all.
std::vector<bool> surely_ran(const OperationLog& log, IssuePoint begin) {
    VectorClock reached;
    for (std::uint64_t wait = 0; wait < begin.host_waits; ++wait) {
        reached.advance(log.host_waits()[wait].mark);
    }
    std::vector<bool> ran(log.size());
    for (std::uint64_t id = begin.operations; id-- > 0;) {
        const OperationRecord& record = log[id];
        if (record.sequence != 0 && reached.covers(record.epoch())) {
            ran[id] = true;
            reached.advance(record.after());
        }
    }
    return ran;
}

std::vector<Holder> by_tag_after(const OperationLog& log, const std::vector<std::uint64_t>& ran) {
    std::map<NameId, std::pair<std::int64_t, std::int64_t>> sums;
    for (const std::uint64_t id : ran) {
        auto& [requested, rounded] = sums[log[id].tag];
        requested += weight_of(log[id], Size::requested);
        rounded += weight_of(log[id], Size::rounded);
    }
    std::vector<Holder> holders;
    for (const auto& [tag, sum] : sums) {
        if (sum.first > 0) {
            holders.push_back({log.names()[tag],
                               static_cast<std::uint64_t>(sum.first),
                               static_cast<std::uint64_t>(sum.second),
                               {}});
        }
    }
    std::sort(holders.begin(), holders.end(), [](const Holder& a, const Holder& b) {
        return std::tie(b.requested_bytes, a.tag) < std::tie(a.requested_bytes, b.tag);
    });
    return holders;
}

}  // namespace

DevicePeak device_peak(const OperationLog& log, IssuePoint begin, Size size) {
    const std::vector<bool> ran = surely_ran(log, begin);
    OrderEdges edges(log, begin.host_waits);
    PeakGraph graph;  // of what has not run for sure
    std::vector<std::uint64_t> ids;
    std::vector<std::uint64_t> order;
    std::int64_t bytes = 0;
    for (std::uint64_t id = 0; id < log.size(); ++id) {
        if (ran[id]) {
            order.push_back(id);
            bytes += weight_of(log[id], size);
        } else if (log[id].sequence != 0) {
            edges.add(id);
            ids.push_back(id);
            graph.weight_bytes.push_back(weight_of(log[id], size));
        }
    }
    graph.edges = edges.take();
    const WorstPeak worst = worst_peak(graph);
    DevicePeak peak;
    peak.bytes = static_cast<std::uint64_t>(bytes + worst.bytes);
    peak.operations_at_peak = order.size() + worst.operations_at_peak;
    for (const std::uint32_t node : worst.order) {
        order.push_back(ids[node]);
    }
    peak.schedule.reserve(order.size());
    for (const std::uint64_t id : order) {
        peak.schedule.push_back({id, log.digest(id)});
    }
    order.resize(peak.operations_at_peak);
    peak.by_tag = by_tag_after(log, order);
    return peak;
}

}  // namespace swaplab::sim
