#pragma once

/// What a stream of the simulated accelerator holds until it runs.

#include "simulated/clock.hpp"
#include "simulated/launches.hpp"

#include "swaplab/sim/memory_ledger.hpp"

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <variant>
#include <vector>

namespace swaplab::sim {

/// A record, or a wait: only its place in the order matters.
struct Marker {};
/// Addresses in these are what the executor uses: aliases of device memory, pinned memory as it is.
struct CopyWork {
    std::byte* destination;
    const std::byte* source;
    std::uint64_t bytes;
    bool to_host;
};
struct FillWork {
    std::byte* destination;
    std::byte value;
    std::uint64_t bytes;
};
/// Poisons fresh memory and begins its occupied lifetime.
struct AllocateWork {
    std::byte* memory;
    std::uint64_t bytes;
    MemoryLedger::Id ledger_id;
};
/// Poisons memory and ends its occupied lifetime.
struct FreeWork {
    std::byte* memory;
    std::uint64_t bytes;
    MemoryLedger::Id ledger_id;
};
/// The body and ranges of a launch are kept by the device, so that operations are plain bytes.
struct KernelWork {
    std::uint64_t launch;
};

using Work = std::variant<Marker, CopyWork, FillWork, AllocateWork, FreeWork, KernelWork>;
static_assert(std::is_trivially_copyable_v<Work>);

struct Operation {
    std::uint64_t id = 0;  ///< issue order over the whole device; never reused
    Epoch after{};         ///< must have run before, beside what precedes it in its lane
    Work work;
};

/// Operations of one lane, first in first out. Keeps its memory.
class OperationQueue {
  public:
    [[nodiscard]] bool empty() const noexcept { return head_ == operations_.size(); }
    [[nodiscard]] Operation& front() noexcept { return operations_[head_]; }
    [[nodiscard]] const Operation& front() const noexcept { return operations_[head_]; }
    void push(const Operation& operation) {
        if (operations_.size() == operations_.capacity() && head_ >= operations_.size() / 2) {
            operations_.erase(operations_.begin(),
                              operations_.begin() + static_cast<std::ptrdiff_t>(head_));
            head_ = 0;
        }
        operations_.push_back(operation);
    }
    void pop() {
        ++head_;
        if (empty()) {
            operations_.clear();
            head_ = 0;
        }
    }

  private:
    std::vector<Operation> operations_;
    std::size_t head_ = 0;  ///< what is before has run
};

/// What running an operation may touch beside memory.
struct ExecutionContext {
    MemoryLedger& ledger;
    Launches& launches;
    bool poison;
};

/// The patterns are signalling NaNs as fp32, so that arithmetic on them shows.
inline constexpr std::uint32_t poison_fresh = 0x7fa5a5a5U;
inline constexpr std::uint32_t poison_freed = 0x7f9e9e9eU;
inline constexpr std::uint32_t poison_in_flight = 0x7f969696U;

/// Fills the destination of a copy that has not run.
void poison_destination(const CopyWork& copy);

/// Runs `work` now. Throws what a kernel's body throws.
void run(const Work& work, const ExecutionContext& context);

}  // namespace swaplab::sim
