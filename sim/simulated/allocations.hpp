#pragma once

/// Which addresses belong to which allocation of a simulated device.

#include "simulated/address_index.hpp"
#include "simulated/names.hpp"
#include "simulated/shadow.hpp"

#include "swaplab/sim/call_site.hpp"
#include "swaplab/sim/memory_ledger.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <memory>
#include <vector>

namespace swaplab::sim {

inline constexpr std::uint64_t device_alignment_bytes = 256;
inline constexpr std::uint64_t pinned_alignment_bytes = 4096;

struct FreeAligned {
    void operator()(std::byte* memory) const noexcept { std::free(memory); }
};
using PinnedMemory = std::unique_ptr<std::byte, FreeAligned>;

struct Allocation {
    std::uint64_t address = 0;
    std::uint64_t bytes = 0;          ///< as asked for
    std::uint64_t rounded_bytes = 0;  ///< as charged
    NameId tag = 0;
    bool live = false;
    CallSite site;
    CallSite freed_at;
    MemoryLedger::Id ledger_id = 0;
    Epoch birth{};            ///< of device memory: the allocation
    std::uint64_t owner = 0;  ///< of device memory: the serial of the stream it was allocated on
    bool outside = false;     ///< of device memory: beside the pool
    PinnedMemory block;       ///< of pinned memory
    Shadow shadow;
};

/// Live allocations of one memory kind by address, and the last freed ones of each place.
class Allocations {
  public:
    /// Allocations start at multiples of `granule_bytes`.
    explicit Allocations(std::uint64_t granule_bytes) : index_(granule_bytes) {}

    /// A live allocation at [address, address + rounded_bytes) for the caller to fill; freed ones
    /// that began there are forgotten. Valid until it is removed and its addresses are used again.
    Allocation& add(std::uint64_t address, std::uint64_t bytes, std::uint64_t rounded_bytes);
    void remove(Allocation& allocation, CallSite freed_at) noexcept;

    /// The live allocation that holds `address`; nullptr when there is none.
    [[nodiscard]] Allocation* find(std::uint64_t address) noexcept;
    [[nodiscard]] const Allocation* find(std::uint64_t address) const noexcept;
    /// The freed allocation that held `address` until now; nullptr when there is none.
    [[nodiscard]] const Allocation* find_freed(std::uint64_t address) const noexcept;

    /// Heap bytes of shadow state and the number of its intervals, of live allocations.
    struct ShadowSize {
        std::size_t bytes = 0;
        std::size_t intervals = 0;
    };
    [[nodiscard]] ShadowSize shadow_size() const noexcept;

  private:
    [[nodiscard]] const Allocation* holder(std::uint64_t address) const noexcept;

    AddressIndex index_;
    std::deque<Allocation> slots_;
    std::vector<std::uint32_t> unused_;
};

inline std::byte* pointer_to(std::uint64_t address) noexcept {
    return reinterpret_cast<std::byte*>(static_cast<std::uintptr_t>(address));
}
inline std::uint64_t address_of(const void* pointer) noexcept {
    return reinterpret_cast<std::uintptr_t>(pointer);
}

}  // namespace swaplab::sim
