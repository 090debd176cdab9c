#pragma once

/// Keeps the host from pinned pages that pending work uses, so that accesses without a scope show.

#include "simulated/clock.hpp"
#include "simulated/host_trap.hpp"
#include "simulated/shadow.hpp"

#include "swaplab/sim/device.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

namespace swaplab::sim {

/// Pages that a pending operation writes are PROT_NONE and those it reads PROT_READ, from when it
/// is issued until the host is ordered after it. The listener is told of what the host does to them
/// all the same and lets the guard open the page. Spans hold addresses.
class PageGuard {
  public:
    explicit PageGuard(TouchListener& listener) noexcept : listener_(listener) {}
    ~PageGuard();
    PageGuard(const PageGuard&) = delete;
    PageGuard& operator=(const PageGuard&) = delete;

    /// Whole pages of pinned memory come and go; the guards on them end with them.
    void watch(Span pages);
    void forget(std::uint64_t begin);

    /// Operations come in the order of their ids.
    void raise(Touch touch, Span bytes, Access access);
    /// Ends the guards of what `host` covers.
    void lower(const VectorClock& host);
    /// The pages of `bytes` are open until a guard on them is raised or lowered.
    static void open(Span bytes);

    struct HostTouch {
        std::uint64_t address = 0;
        TouchListener::Kind kind{};
    };
    /// Opens the page of a touch and remembers it. For signal handlers.
    void open_to(HostTouch touch) noexcept;
    /// Touches since the last call, in their order; those after the first 64 are not remembered.
    [[nodiscard]] std::vector<HostTouch> take_touches();

    /// While it lives, `operation` may touch what its own guards keep from the host, and no touch
    /// is the host's.
    class Passage {
      public:
        Passage(PageGuard& guard, std::uint64_t operation);
        ~Passage();
        Passage(const Passage&) = delete;
        Passage& operator=(const Passage&) = delete;

      private:
        PageGuard& guard_;
        std::uint64_t operation_;
    };

  private:
    enum class Level : std::uint8_t { open, readable, closed };
    struct Guard {
        Touch touch;
        Span pages;
        Level level{};
    };
    struct Watched {
        std::uint64_t end = 0;
        std::unique_ptr<TouchWatch> watch;
    };

    /// Gives each page what the guards on it ask for.
    void protect(Span pages) const;
    [[nodiscard]] std::vector<Span> pages_of(std::uint64_t operation) const;

    TouchListener& listener_;
    std::map<std::uint64_t, Watched> watched_;  ///< by first address
    std::vector<Guard> guards_;                 ///< by operation
    bool passing_ = false;
    std::array<HostTouch, 64> touches_;  ///< fixed: signal handlers must not allocate
    std::size_t touch_count_ = 0;
};

}  // namespace swaplab::sim
