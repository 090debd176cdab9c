#pragma once

/// Who touched which bytes of one allocation last.

#include "simulated/clock.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace swaplab::sim {

/// One access: where it stands in the order, and which operation it was.
struct Touch {
    Epoch epoch{};
    std::uint64_t operation = 0;
};

struct Span {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
};

/// An earlier access to some of the bytes that the later one is not ordered after.
struct Conflict {
    Touch earlier;
    Span bytes;
};

/// Shadow state by byte interval: the last write, and the reads since then. Intervals split where
/// accesses overlap in part and join again at the next write. Two accesses conflict when one writes
/// and the later one's clock does not cover the earlier one; it is enough to look at the last
/// accesses, because whoever conflicts with an older one conflicts with what came between, or that
/// was found then. For the same reason a read drops the reads that it is ordered after.
class Shadow {
  public:
    Shadow() = default;
    /// `birth` counts as a write that everybody must be ordered after, but leaves bytes that
    /// nothing has written when `written` is false.
    void begin(std::uint64_t bytes, Touch birth, bool written);

    /// What an access finds first in its span.
    struct Verdict {
        std::optional<Conflict> conflict;
        std::optional<Span> unwritten;  ///< of a read: bytes that nothing has written
    };
    /// Checks an access by somebody at `clock`, which covers `touch` itself, and remembers it. An
    /// operation that reads and writes the same bytes reads first.
    Verdict read(Span span, Touch touch, const VectorClock& clock);
    Verdict write(Span span, Touch touch, const VectorClock& clock);

    /// The first bytes of `span` that a read by somebody at `clock` conflicts on.
    [[nodiscard]] std::optional<Conflict> conflict_of_read(Span span,
                                                           const VectorClock& clock) const;
    [[nodiscard]] std::optional<Conflict> conflict_of_write(Span span,
                                                            const VectorClock& clock) const;
    [[nodiscard]] std::size_t interval_count() const noexcept {
        return parts_.empty() ? 1 : parts_.size();
    }
    [[nodiscard]] std::size_t heap_bytes() const noexcept;

  private:
    struct Interval {
        std::uint64_t end = 0;  ///< it begins where the one before it ends
        bool written = false;
        Touch write;
        Touch read;                     ///< sequence 0: none
        std::vector<Touch> more_reads;  ///< unordered with each other; seldom any

        void add_read(Touch touch, const VectorClock& clock);
        [[nodiscard]] const Touch* unordered_read(const VectorClock& clock) const noexcept;
    };

    [[nodiscard]] Interval& at(std::size_t place) noexcept {
        return parts_.empty() ? whole_ : parts_[place];
    }
    [[nodiscard]] const Interval& at(std::size_t place) const noexcept {
        return parts_.empty() ? whole_ : parts_[place];
    }
    [[nodiscard]] std::size_t first_of(std::uint64_t offset) const noexcept;
    [[nodiscard]] std::uint64_t begin_of(std::size_t place) const noexcept {
        return place == 0 ? 0 : at(place - 1).end;
    }
    [[nodiscard]] Span overlap(std::size_t place, Span span) const noexcept;
    void split(std::size_t place, std::uint64_t offset);
    void become_one(std::size_t first, Span span, Touch touch);

    Interval whole_;               ///< the only interval while there are no parts
    std::vector<Interval> parts_;  ///< by offset
};

}  // namespace swaplab::sim
