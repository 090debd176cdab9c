#pragma once

/// What a stream of the simulated accelerator holds until it runs.

#include "simulated/clock.hpp"

#include "swaplab/sim/call_site.hpp"
#include "swaplab/sim/kernel.hpp"
#include "swaplab/sim/memory_ledger.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <variant>

namespace swaplab::sim {

/// A record, or a wait: only its place in the order matters.
struct Marker {};
/// Addresses in these are what the executor uses: aliases of device memory, pinned memory as it is.
struct CopyWork {
    std::byte* destination;
    const std::byte* source;
    std::uint64_t bytes;
};
struct FillWork {
    std::byte* destination;
    std::byte value;
    std::uint64_t bytes;
};
/// Poisons fresh memory.
struct AllocateWork {
    std::byte* memory;
    std::uint64_t bytes;
};
/// Poisons memory and ends its occupied lifetime.
struct FreeWork {
    std::byte* memory;
    std::uint64_t bytes;
    MemoryLedger::Id ledger_id;
};
struct KernelWork {
    std::string name;
    std::function<void(const DeviceAccess&)> body;
};

using Work = std::variant<Marker, CopyWork, FillWork, AllocateWork, FreeWork, KernelWork>;

struct Operation {
    std::uint64_t id = 0;  ///< issue order over the whole device; never reused
    Epoch after{};         ///< must have run before, beside what precedes it in its lane
    Work work;
};

/// What running an operation may touch beside memory.
struct ExecutionContext {
    MemoryLedger& ledger;
    DeviceAccess access;
};

/// Both patterns are signalling NaNs as fp32, so that arithmetic on them shows.
inline constexpr std::uint32_t poison_fresh = 0x7fa5a5a5U;
inline constexpr std::uint32_t poison_freed = 0x7f9e9e9eU;

/// Runs `work` now. Throws what a kernel's body throws.
void run(const Work& work, ExecutionContext& context);

}  // namespace swaplab::sim
