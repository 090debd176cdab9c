#pragma once

/// Accounting of every byte a device hands out, with tags, peaks and nested windows.

#include "swaplab/sim/call_site.hpp"
#include "swaplab/sim/error.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace swaplab::sim {

enum class MemoryKind : std::uint8_t { device, pinned, host };
inline constexpr std::size_t memory_kind_count = 3;

/// "device", "pinned", "host".
[[nodiscard]] std::string_view name_of(MemoryKind kind) noexcept;

/// Which bytes a figure counts. Requested: as asked for. Rounded: as charged against capacity.
enum class Size : std::uint8_t { requested, rounded };

/// Which lifetime a figure counts. Charged: from before allocate() returns until deallocate() is
/// called (call order; equal on every backend). Occupied: from when the allocation has run in its
/// stream until the free has (what a stream-ordered allocator really holds).
enum class Lifetime : std::uint8_t { charged, occupied };

/// The book of one rank's memory.
///
/// Two lifetimes and two sizes of every allocation are kept (see Lifetime, Size). The sum over tags
/// equals the total at every moment; SWAPLAB_ASSERT holds it to that.
/// Threads: one, the owning rank's. Units: bytes. Ownership: belongs to its Device.
class MemoryLedger {
  public:
    using Id = std::uint64_t;  ///< never reused

    MemoryLedger() = default;
    MemoryLedger(const MemoryLedger&) = delete;
    MemoryLedger& operator=(const MemoryLedger&) = delete;

    /// Begins the charged lifetime. `tag` says what it is for ("a.exp_avg", "slot 0").
    Id charge(MemoryKind kind, std::uint64_t requested_bytes, std::uint64_t rounded_bytes,
              std::string_view tag, CallSite site);
    /// Pageable host memory that may be charged at once; unlimited until said.
    void limit_host(std::uint64_t bytes) noexcept { host_capacity_bytes_ = bytes; }
    [[nodiscard]] std::uint64_t host_capacity_bytes() const noexcept {
        return host_capacity_bytes_;
    }

    /// Begins the occupied lifetime: at once, or when the allocation runs, charged still or not.
    void occupy(Id id) noexcept;
    /// Ends the charged lifetime. `id` must be charged.
    void discharge(Id id) noexcept;
    /// Ends the occupied lifetime, after the charged one.
    void vacate(Id id) noexcept;

    [[nodiscard]] std::uint64_t now(MemoryKind kind, Size size = Size::requested,
                                    Lifetime lifetime = Lifetime::charged) const noexcept;
    /// Highest value of now() since construction.
    [[nodiscard]] std::uint64_t peak(MemoryKind kind, Size size = Size::requested,
                                     Lifetime lifetime = Lifetime::charged) const noexcept;
    /// Rounded bytes of what is discharged and not vacated yet: given back while its work pends.
    [[nodiscard]] std::uint64_t pending_bytes(MemoryKind kind) const noexcept;
    /// Sum of charged requested bytes of one tag, exactly as given to charge().
    [[nodiscard]] std::uint64_t tagged(MemoryKind kind, std::string_view tag) const;
    /// Live (charged) allocations, largest first, ties by tag and id; at most `count_max`.
    [[nodiscard]] std::vector<Holder> holders(MemoryKind kind, std::size_t count_max) const;
    /// Sums per tag of what is charged, largest first, ties by tag.
    [[nodiscard]] std::vector<Holder> by_tag(MemoryKind kind) const;
    /// Sums per tag when peak(kind) was first reached, largest first, ties by tag.
    [[nodiscard]] std::vector<Holder> by_tag_at_peak(MemoryKind kind) const;
    [[nodiscard]] std::size_t live_count(MemoryKind kind) const noexcept;

    /// Measures one phase. Windows nest: an inner one gives its peak back to the outer one.
    /// Must not outlive the ledger; destroy in reverse order of construction.
    class Window {
      public:
        explicit Window(MemoryLedger& ledger);
        ~Window();
        Window(const Window&) = delete;
        Window& operator=(const Window&) = delete;

        [[nodiscard]] std::uint64_t before(MemoryKind kind, Size size = Size::requested,
                                           Lifetime lifetime = Lifetime::charged) const noexcept;
        [[nodiscard]] std::uint64_t peak(MemoryKind kind, Size size = Size::requested,
                                         Lifetime lifetime = Lifetime::charged) const noexcept;
        /// peak - before.
        [[nodiscard]] std::uint64_t rise(MemoryKind kind, Size size = Size::requested,
                                         Lifetime lifetime = Lifetime::charged) const noexcept;
        /// now - before; negative when the phase gave memory back.
        [[nodiscard]] std::int64_t kept(MemoryKind kind, Size size = Size::requested,
                                        Lifetime lifetime = Lifetime::charged) const noexcept;
        /// Sums per tag at this window's charged requested peak.
        [[nodiscard]] std::vector<Holder> by_tag_at_peak(MemoryKind kind) const;

      private:
        friend class MemoryLedger;
        MemoryLedger& ledger_;
        std::size_t depth_;
    };

  private:
    using TagId = std::uint32_t;
    /// A place for one allocation, used again after it. An id is the number of allocations in this
    /// place before, and the place.
    struct Entry {
        std::uint32_t generation = 0;
        MemoryKind kind{};
        bool charged = false;
        bool occupied = false;
        bool vacated = true;
        TagId tag = 0;
        std::uint64_t order = 0;  ///< of the charge, among all
        std::uint64_t requested_bytes = 0;
        std::uint64_t rounded_bytes = 0;
        CallSite site;
    };
    struct TagSum {
        std::uint64_t requested_bytes = 0;
        std::uint64_t rounded_bytes = 0;
        std::uint64_t count = 0;
    };
    using Tags = std::vector<TagSum>;  ///< by TagId; may end before the newest tag
    /// Index: kind, size, lifetime.
    using Counters = std::array<std::array<std::array<std::uint64_t, 2>, 2>, memory_kind_count>;
    struct Frame {
        Counters before{};
        Counters peak{};
        /// Tags at the peak, except while the ledger stands at it: then tags_ are it.
        std::array<Tags, memory_kind_count> tags_at_peak;
        std::array<bool, memory_kind_count> at_peak{true, true, true};
    };

    void add(Lifetime lifetime, const Entry& entry) noexcept;
    void subtract(Lifetime lifetime, const Entry& entry) noexcept;
    void leave_peak(MemoryKind kind);
    void check_tags(MemoryKind kind) const;
    [[nodiscard]] TagId intern(std::string_view tag);
    [[nodiscard]] Entry& entry(Id id);
    [[nodiscard]] std::vector<Holder> largest_first(const Tags& tags) const;
    [[nodiscard]] std::uint64_t peak_from(std::size_t depth, MemoryKind kind, Size size,
                                          Lifetime lifetime) const noexcept;
    [[nodiscard]] std::vector<Holder> tags_from(std::size_t depth, MemoryKind kind) const;

    std::deque<std::string> tag_texts_;
    std::unordered_map<std::string_view, TagId> tag_ids_;  ///< views of tag_texts_; only looked up
    std::vector<Entry> entries_;
    std::vector<std::uint32_t> unused_;  ///< places in entries_
    std::uint64_t charges_ = 0;
    std::uint64_t host_capacity_bytes_ = std::numeric_limits<std::uint64_t>::max();
    std::array<std::size_t, memory_kind_count> live_{};
    std::array<std::size_t, memory_kind_count> held_tags_{};  ///< tags with bytes
    Counters now_{};
    std::array<Tags, memory_kind_count> tags_;
    std::vector<Frame> frames_{1};
};

}  // namespace swaplab::sim
