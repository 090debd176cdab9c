#include "scenario/play/memory_figures.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace swaplab::harness::scenario {
namespace {

constexpr std::array kinds{sim::MemoryKind::device, sim::MemoryKind::pinned, sim::MemoryKind::host};

std::map<std::string, Bytes2> tags_of(const std::vector<sim::Holder>& holders) {
    std::map<std::string, Bytes2> out;
    for (const sim::Holder& holder : holders) {
        Bytes2& sum = out[holder.tag];
        sum.requested += static_cast<std::int64_t>(holder.requested_bytes);
        sum.rounded += static_cast<std::int64_t>(holder.rounded_bytes);
    }
    return out;
}

Bytes2 now_of(const sim::MemoryLedger& ledger, sim::MemoryKind kind,
              sim::Lifetime lifetime = sim::Lifetime::charged) {
    return {static_cast<std::int64_t>(ledger.now(kind, sim::Size::requested, lifetime)),
            static_cast<std::int64_t>(ledger.now(kind, sim::Size::rounded, lifetime))};
}

Bytes2 peak_of(const sim::MemoryLedger::Window& window, sim::MemoryKind kind,
               sim::Lifetime lifetime = sim::Lifetime::charged) {
    return {static_cast<std::int64_t>(window.peak(kind, sim::Size::requested, lifetime)),
            static_cast<std::int64_t>(window.peak(kind, sim::Size::rounded, lifetime))};
}

Bytes2 both_sizes(std::uint64_t bytes) {
    return {static_cast<std::int64_t>(bytes), static_cast<std::int64_t>(bytes)};
}

}  // namespace

void begin_memory(StepRecord& record, sim::SimulatedDevice& device) {
    const sim::MemoryLedger& ledger = device.ledger();
    device.restart_reserved_peaks();
    const sim::AllocatorStats stats = device.allocator_stats();
    record.reserved[0].before = both_sizes(stats.reserved.now);
    record.reserved[1].before = both_sizes(stats.pinned_reserved.now);
    for (std::size_t i = 0; i < kinds.size(); ++i) {
        record.memory[i].before = now_of(ledger, kinds[i]);
        record.memory[i].tags_before = tags_of(ledger.by_tag(kinds[i]));
        record.occupied[i].before = now_of(ledger, kinds[i], sim::Lifetime::occupied);
    }
}

void end_memory(StepRecord& record, const sim::SimulatedDevice& device,
                const sim::MemoryLedger::Window& window) {
    const sim::MemoryLedger& ledger = device.ledger();
    const sim::AllocatorStats stats = device.allocator_stats();
    record.reserved[0].peak = both_sizes(stats.reserved.peak);
    record.reserved[0].now = both_sizes(stats.reserved.now);
    record.reserved[1].peak = both_sizes(stats.pinned_reserved.peak);
    record.reserved[1].now = both_sizes(stats.pinned_reserved.now);
    for (std::size_t i = 0; i < kinds.size(); ++i) {
        MemoryFigures& charged = record.memory[i];
        charged.peak = peak_of(window, kinds[i]);
        charged.tags_at_peak = tags_of(window.by_tag_at_peak(kinds[i]));
        charged.now = now_of(ledger, kinds[i]);
        charged.tags_now = tags_of(ledger.by_tag(kinds[i]));
        MemoryFigures& occupied = record.occupied[i];
        occupied.peak = peak_of(window, kinds[i], sim::Lifetime::occupied);
        occupied.now = now_of(ledger, kinds[i], sim::Lifetime::occupied);
    }
}

void begin_worst(MemoryFigures& worst, const sim::SimulatedDevice& device) {
    const sim::DevicePeak now = device.worst_peak(sim::Size::requested, device.issue_point());
    worst.before.requested = static_cast<std::int64_t>(now.bytes);
    worst.tags_before = tags_of(now.by_tag);
}

void end_worst(MemoryFigures& worst, const sim::SimulatedDevice& device, sim::IssuePoint begin) {
    const sim::DevicePeak peak = device.worst_peak(sim::Size::requested, begin);
    const sim::DevicePeak now = device.worst_peak(sim::Size::requested, device.issue_point());
    worst.peak.requested = static_cast<std::int64_t>(peak.bytes);
    worst.tags_at_peak = tags_of(peak.by_tag);
    worst.now.requested = static_cast<std::int64_t>(now.bytes);
    worst.tags_now = tags_of(now.by_tag);
}

}  // namespace swaplab::harness::scenario
