#include "simulated/shadow.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace swaplab::sim {
namespace {

Span overlap(std::uint64_t begin, std::uint64_t end, Span span) {
    return {std::max(begin, span.begin), std::min(end, span.end)};
}

}  // namespace

Shadow::Shadow(std::uint64_t bytes, Touch birth, bool written) {
    intervals_.emplace(0, Interval{bytes, written, birth, {}});
}

Shadow::Intervals::const_iterator Shadow::first_of(std::uint64_t offset) const {
    return std::prev(intervals_.upper_bound(offset));
}

std::optional<Conflict> Shadow::conflict_of_read(Span span, const VectorClock& clock) const {
    for (auto it = first_of(span.begin); it != intervals_.end() && it->first < span.end; ++it) {
        if (!clock.covers(it->second.write.epoch)) {
            return Conflict{it->second.write, overlap(it->first, it->second.end, span)};
        }
    }
    return std::nullopt;
}

std::optional<Conflict> Shadow::conflict_of_write(Span span, const VectorClock& clock) const {
    for (auto it = first_of(span.begin); it != intervals_.end() && it->first < span.end; ++it) {
        const Interval& interval = it->second;
        const Span bytes = overlap(it->first, interval.end, span);
        if (!clock.covers(interval.write.epoch)) {
            return Conflict{interval.write, bytes};
        }
        const auto found =
            std::find_if(interval.reads.begin(), interval.reads.end(),
                         [&clock](const Touch& read) { return !clock.covers(read.epoch); });
        if (found != interval.reads.end()) {
            return Conflict{*found, bytes};
        }
    }
    return std::nullopt;
}

std::optional<Span> Shadow::unwritten(Span span) const {
    for (auto it = first_of(span.begin); it != intervals_.end() && it->first < span.end; ++it) {
        if (!it->second.written) {
            return overlap(it->first, it->second.end, span);
        }
    }
    return std::nullopt;
}

void Shadow::split(std::uint64_t offset) {
    const auto it = std::prev(intervals_.upper_bound(offset));
    if (it->first == offset || it->second.end == offset) {
        return;
    }
    Interval rest = it->second;
    it->second.end = offset;
    intervals_.emplace(offset, std::move(rest));
}

void Shadow::read(Span span, Touch touch) {
    split(span.begin);
    split(span.end);
    for (auto it = intervals_.lower_bound(span.begin);
         it != intervals_.end() && it->first < span.end; ++it) {
        std::vector<Touch>& reads = it->second.reads;
        const auto same_lane = std::find_if(
            reads.begin(), reads.end(),
            [&touch](const Touch& read) { return read.epoch.lane == touch.epoch.lane; });
        if (same_lane != reads.end()) {
            *same_lane = touch;
        } else {
            reads.push_back(touch);
        }
    }
}

void Shadow::write(Span span, Touch touch) {
    split(span.begin);
    split(span.end);
    const auto first = intervals_.lower_bound(span.begin);
    const auto last = intervals_.lower_bound(span.end);
    intervals_.insert_or_assign(intervals_.erase(first, last), span.begin,
                                Interval{span.end, true, touch, {}});
}

}  // namespace swaplab::sim
