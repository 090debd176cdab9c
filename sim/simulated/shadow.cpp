#include "simulated/shadow.hpp"

#include <algorithm>

namespace swaplab::sim {

void Shadow::Interval::add_read(Touch touch, const VectorClock& clock) {
    if (!more_reads.empty()) [[unlikely]] {
        std::erase_if(more_reads, [&clock](const Touch& old) { return clock.covers(old.epoch); });
    }
    if (clock.covers(read.epoch)) {
        read = touch;
    } else {
        more_reads.push_back(touch);
    }
}

const Touch* Shadow::Interval::unordered_read(const VectorClock& clock) const noexcept {
    if (!clock.covers(read.epoch)) {
        return &read;
    }
    const auto found = std::find_if(more_reads.begin(), more_reads.end(),
                                    [&clock](const Touch& t) { return !clock.covers(t.epoch); });
    return found == more_reads.end() ? nullptr : &*found;
}

void Shadow::begin(std::uint64_t bytes, Touch birth, bool written) {
    parts_.clear();
    whole_.end = bytes;
    whole_.written = written;
    whole_.write = birth;
    whole_.read = {};
    whole_.more_reads.clear();
}

std::size_t Shadow::heap_bytes() const noexcept {
    std::size_t bytes = parts_.capacity() * sizeof(Interval);
    for (std::size_t i = 0; i < interval_count(); ++i) {
        bytes += at(i).more_reads.capacity() * sizeof(Touch);
    }
    return bytes;
}

std::size_t Shadow::first_of(std::uint64_t offset) const noexcept {
    if (at(0).end > offset) {
        return 0;
    }
    const auto found = std::upper_bound(
        parts_.begin(), parts_.end(), offset,
        [](std::uint64_t value, const Interval& interval) { return value < interval.end; });
    return static_cast<std::size_t>(found - parts_.begin());
}

Span Shadow::overlap(std::size_t place, Span span) const noexcept {
    return {std::max(begin_of(place), span.begin), std::min(at(place).end, span.end)};
}

void Shadow::split(std::size_t place, std::uint64_t offset) {
    if (parts_.empty()) {
        parts_.push_back(whole_);
    }
    Interval left = parts_[place];
    left.end = offset;
    parts_.insert(parts_.begin() + static_cast<std::ptrdiff_t>(place), std::move(left));
}

Shadow::Verdict Shadow::read(Span span, Touch touch, const VectorClock& clock) {
    Verdict verdict;
    std::size_t place = first_of(span.begin);
    if (begin_of(place) < span.begin) {
        split(place++, span.begin);
    }
    for (std::uint64_t begin = span.begin; begin < span.end; begin = at(place++).end) {
        if (at(place).end > span.end) {
            split(place, span.end);
        }
        Interval& interval = at(place);
        if (!verdict.conflict && !clock.covers(interval.write.epoch)) {
            verdict.conflict = Conflict{interval.write, overlap(place, span)};
        }
        if (!interval.written) {
            if (!verdict.unwritten) {
                verdict.unwritten = overlap(place, span);
            } else if (verdict.unwritten->end == begin) {
                verdict.unwritten->end = interval.end;
            }
        }
        interval.add_read(touch, clock);
    }
    return verdict;
}

Shadow::Verdict Shadow::write(Span span, Touch touch, const VectorClock& clock) {
    Verdict verdict{conflict_of_write(span, clock), {}};
    std::size_t place = first_of(span.begin);
    if (begin_of(place) < span.begin) {
        split(place++, span.begin);
    }
    become_one(place, span, touch);
    return verdict;
}

void Shadow::become_one(std::size_t first, Span span, Touch touch) {
    std::size_t last = first;
    while (at(last).end < span.end) {
        ++last;
    }
    if (at(last).end > span.end) {
        split(last, span.end);
    }
    if (last > first) {
        const auto begin = parts_.begin() + static_cast<std::ptrdiff_t>(first);
        parts_.erase(begin, begin + static_cast<std::ptrdiff_t>(last - first));
    }
    Interval& whole = at(first);
    whole.end = span.end;
    whole.written = true;
    whole.write = touch;
    whole.read = {};
    whole.more_reads.clear();
}

std::optional<Conflict> Shadow::conflict_of_read(Span span, const VectorClock& clock) const {
    for (std::size_t place = first_of(span.begin);
         place < interval_count() && begin_of(place) < span.end; ++place) {
        if (!clock.covers(at(place).write.epoch)) {
            return Conflict{at(place).write, overlap(place, span)};
        }
    }
    return std::nullopt;
}

std::optional<Conflict> Shadow::conflict_of_write(Span span, const VectorClock& clock) const {
    for (std::size_t place = first_of(span.begin);
         place < interval_count() && begin_of(place) < span.end; ++place) {
        const Interval& interval = at(place);
        const Touch* earlier = &interval.write;
        if (clock.covers(interval.write.epoch)) {
            earlier = interval.unordered_read(clock);
        }
        if (earlier != nullptr) {
            return Conflict{*earlier, overlap(place, span)};
        }
    }
    return std::nullopt;
}

}  // namespace swaplab::sim
