#pragma once

/// Which addresses belong to which allocation of a simulated device.

#include "simulated/shadow.hpp"

#include "swaplab/sim/call_site.hpp"
#include "swaplab/sim/memory_ledger.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

namespace swaplab::sim {

struct Allocation {
    std::uint64_t address = 0;
    std::uint64_t bytes = 0;          ///< as asked for
    std::uint64_t rounded_bytes = 0;  ///< as charged
    std::string tag;
    CallSite site;
    MemoryLedger::Id ledger_id = 0;
    Shadow shadow;
};

/// Live allocations of one memory kind by address, and the last freed ones of each place.
class Allocations {
  public:
    Allocation& add(Allocation allocation);
    /// Moves the live allocation to the freed ones.
    void remove(std::uint64_t address, CallSite freed_at);

    /// The live allocation that holds `address`; nullptr when there is none.
    [[nodiscard]] Allocation* find(std::uint64_t address) noexcept;
    [[nodiscard]] const Allocation* find(std::uint64_t address) const noexcept;

    struct Freed {
        std::uint64_t address = 0;
        std::uint64_t bytes = 0;
        std::uint64_t rounded_bytes = 0;
        std::string tag;
        CallSite allocated_at;
        CallSite freed_at;
    };
    /// The freed allocation that held `address` until now; nullptr when there is none.
    [[nodiscard]] const Freed* find_freed(std::uint64_t address) const noexcept;

    [[nodiscard]] const std::map<std::uint64_t, Allocation>& live() const noexcept { return live_; }

  private:
    std::map<std::uint64_t, Allocation> live_;
    std::map<std::uint64_t, Freed> freed_;
};

inline std::uint64_t address_of(const void* pointer) noexcept {
    return reinterpret_cast<std::uintptr_t>(pointer);
}

}  // namespace swaplab::sim
