#include "simulated/operation.hpp"

#include "swaplab/sim/mutant.hpp"

#include <algorithm>
#include <cstring>
#include <cwchar>

namespace swaplab::sim {
namespace {

static_assert(sizeof(wchar_t) == sizeof(std::uint32_t));

// Device regions are multiples of 256 B.
void poison(std::byte* memory, std::uint64_t bytes, std::uint32_t pattern) {
    std::wmemset(reinterpret_cast<wchar_t*>(memory), static_cast<wchar_t>(pattern),
                 bytes / sizeof(pattern));
}

struct Runner {
    const ExecutionContext& context;

    void operator()(const Marker& /*marker*/) const {}
    void operator()(const CopyWork& copy) const {
        if (!SWAPLAB_MUTANT("sim.copy_ignored")) {
            std::memmove(copy.destination, copy.source, copy.bytes);
        }
    }
    void operator()(const FillWork& fill) const {
        if (!SWAPLAB_MUTANT("sim.fill_ignored")) {
            std::memset(fill.destination, std::to_integer<int>(fill.value), fill.bytes);
        }
    }
    void operator()(const AllocateWork& fresh) const {
        if (context.poison) {
            poison(fresh.memory, fresh.bytes, poison_fresh);
        }
        context.ledger.occupy(fresh.ledger_id);
    }
    void operator()(const FreeWork& freed) const {
        if (context.poison) {
            poison(freed.memory, freed.bytes, poison_freed);
        }
        context.ledger.vacate(freed.ledger_id);
    }
    void operator()(const KernelWork& kernel) const { context.launches.run(kernel.launch); }
};

}  // namespace

// Of any size at any address. The part already filled is copied behind itself, so that this runs at
// the speed of memcpy.
void poison_destination(const CopyWork& copy) {
    constexpr std::uint32_t pattern = poison_in_flight;
    std::memcpy(copy.destination, &pattern, std::min<std::uint64_t>(copy.bytes, sizeof(pattern)));
    for (std::uint64_t done = sizeof(pattern); done < copy.bytes; done *= 2) {
        std::memcpy(copy.destination + done, copy.destination, std::min(done, copy.bytes - done));
    }
}

void run(const Work& work, const ExecutionContext& context) {
    std::visit(Runner{context}, work);
}

}  // namespace swaplab::sim
