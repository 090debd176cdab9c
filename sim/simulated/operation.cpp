#include "simulated/operation.hpp"

#include "swaplab/sim/mutant.hpp"

#include <algorithm>
#include <cstring>

namespace swaplab::sim {
namespace {

// The part already filled is copied behind itself, so that this runs at the speed of memcpy.
void poison(std::byte* memory, std::uint64_t bytes, std::uint32_t pattern) {
    std::memcpy(memory, &pattern, sizeof(pattern));
    for (std::uint64_t done = sizeof(pattern); done < bytes; done *= 2) {
        std::memcpy(memory + done, memory, std::min(done, bytes - done));
    }
}

struct Runner {
    ExecutionContext& context;

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
        poison(fresh.memory, fresh.bytes, poison_fresh);
    }
    void operator()(const FreeWork& freed) const {
        poison(freed.memory, freed.bytes, poison_freed);
        context.ledger.vacate(freed.ledger_id);
    }
    void operator()(const KernelWork& kernel) const {
        if (kernel.body) {
            kernel.body(context.access);
        }
    }
};

}  // namespace

void run(const Work& work, ExecutionContext& context) {
    std::visit(Runner{context}, work);
}

}  // namespace swaplab::sim
