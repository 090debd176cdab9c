#pragma once

/// Who touched which bytes of one allocation last.

#include "simulated/clock.hpp"

#include <cstdint>
#include <map>
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
/// was found then.
class Shadow {
  public:
    /// `birth` counts as a write that everybody must be ordered after, but leaves bytes that
    /// nothing has written when `written` is false.
    Shadow(std::uint64_t bytes, Touch birth, bool written);

    /// The first bytes of `span` that a read by somebody at `clock` conflicts on.
    [[nodiscard]] std::optional<Conflict> conflict_of_read(Span span,
                                                           const VectorClock& clock) const;
    [[nodiscard]] std::optional<Conflict> conflict_of_write(Span span,
                                                            const VectorClock& clock) const;
    /// The first bytes of `span` that nothing has written.
    [[nodiscard]] std::optional<Span> unwritten(Span span) const;

    void read(Span span, Touch touch);
    void write(Span span, Touch touch);

  private:
    struct Interval {
        std::uint64_t end = 0;
        bool written = false;
        Touch write;
        std::vector<Touch> reads;  ///< at most one of each lane
    };
    using Intervals = std::map<std::uint64_t, Interval>;

    [[nodiscard]] Intervals::const_iterator first_of(std::uint64_t offset) const;
    void split(std::uint64_t offset);

    Intervals intervals_;
};

}  // namespace swaplab::sim
