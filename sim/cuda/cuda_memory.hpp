#pragma once

/// What a CUDA device has given out, so that arguments are checked before the driver sees them.

#include "swaplab/sim/call_site.hpp"
#include "swaplab/sim/memory_ledger.hpp"

#include <cstdint>
#include <map>
#include <string>

namespace swaplab::sim {

struct CudaBlock {
    MemoryKind kind{};
    std::uint64_t bytes = 0;
    std::string tag;
    CallSite site;
    MemoryLedger::Id ledger_id = 0;
    bool outside_pool = false;
    std::uint64_t offset_bytes = 0;  ///< of the pointer looked up
};

class CudaMemory {
  public:
    void add(const void* begin, CudaBlock block) { blocks_[address(begin)] = std::move(block); }
    void remove(const void* begin) { blocks_.erase(address(begin)); }

    /// The block of `kind` that `pointer` lies in, or begins; nullptr: none.
    [[nodiscard]] const CudaBlock* find(const void* pointer, MemoryKind kind) {
        auto after = blocks_.upper_bound(address(pointer));
        if (after == blocks_.begin()) {
            return nullptr;
        }
        --after;
        after->second.offset_bytes = address(pointer) - after->first;
        const bool inside = after->second.offset_bytes < after->second.bytes;
        return inside && after->second.kind == kind ? &after->second : nullptr;
    }
    template <class Visit>
    void for_each(Visit visit) const {
        for (const auto& [begin, block] : blocks_) {
            visit(reinterpret_cast<void*>(begin), block);
        }
    }

  private:
    static std::uintptr_t address(const void* pointer) noexcept {
        return reinterpret_cast<std::uintptr_t>(pointer);
    }
    std::map<std::uintptr_t, CudaBlock> blocks_;
};

}  // namespace swaplab::sim
