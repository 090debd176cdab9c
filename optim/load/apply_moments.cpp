#include "load/apply_moments.hpp"

#include "swaplab/sim/buffer.hpp"
#include "swaplab/sim/mutant.hpp"

#include <algorithm>
#include <cstring>
#include <optional>

namespace swaplab::optim {
namespace {

constexpr std::uint64_t block_bytes_max = std::uint64_t{1} << 20U;

/// Fills `out` with bytes from `offset_bytes` on of what `load` gets.
void read_part(StateSource& source, const MomentLoad& load, int rank, std::uint64_t offset_bytes,
               std::span<std::byte> out) {
    if (load.in_source) {
        source.read(load.fqn, load.key, load.live, rank, offset_bytes, out);
    } else if (!SWAPLAB_MUTANT("load.absent_is_zero")) {
        std::memset(out.data(), 0, out.size());
    }
}

void read_in_blocks(StateSource& source, const std::vector<MomentLoad>& loads, int rank,
                    std::span<std::byte> block) {
    for (const MomentLoad& load : loads) {
        const std::uint64_t total = load.live.local_bytes();
        for (std::uint64_t done = 0; done < total; done += block.size()) {
            const auto part = block.first(std::min<std::size_t>(block.size(), total - done));
            read_part(source, load, rank, done, part);
            load.live.storage().write(done, part);
        }
    }
}

std::uint64_t largest_bytes(const std::vector<MomentLoad>& loads) {
    std::uint64_t largest = 0;
    for (const MomentLoad& load : loads) {
        largest = std::max(largest, load.live.local_bytes());
    }
    return largest;
}

std::uint64_t sum_bytes(const std::vector<MomentLoad>& loads) {
    std::uint64_t sum = 0;
    for (const MomentLoad& load : loads) {
        sum += load.live.local_bytes();
    }
    return sum;
}

/// Calls use(load, its part of `shadow`) for every load.
template <class Use>
void for_each_shadow(const std::vector<MomentLoad>& loads, std::span<std::byte> shadow,
                     const Use& use) {
    for (const MomentLoad& load : loads) {
        const std::uint64_t bytes = load.live.local_bytes();
        if (bytes > 0) {
            use(load, shadow.first(bytes));
            shadow = shadow.subspan(bytes);
        }
    }
}

void apply_shadowed(const LoadCall& call, const std::vector<MomentLoad>& loads, sim::Device& device,
                    bool& torn) {
    std::optional<sim::HostBuffer> shadow;
    call.agree("read moments", [&] {
        shadow.emplace(device, sum_bytes(loads), "shadow");
        for_each_shadow(loads, shadow->bytes(), [&](const MomentLoad& load, auto part) {
            read_part(call.source, load, call.communicator.rank(), 0, part);
        });
    });
    torn = true;
    call.agree("replace moments", [&] {
        for_each_shadow(loads, shadow->bytes(), [](const MomentLoad& load, auto part) {
            load.live.storage().write(0, part);
        });
    });
    torn = false;
}

}  // namespace

void apply_moments(const LoadCall& call, const std::vector<MomentLoad>& loads, sim::Device& device,
                   bool& torn) {
    const bool shadowed = call.options.staging == LoadOptions::Staging::shadow;
    if (shadowed && !SWAPLAB_MUTANT("load.shadow")) {
        apply_shadowed(call, loads, device, torn);
        return;
    }
    std::optional<sim::HostBuffer> block;
    call.agree("allocate a block", [&] {
        block.emplace(device, std::min(largest_bytes(loads), block_bytes_max), "load block");
    });
    if (!SWAPLAB_MUTANT("load.torn_mark")) {
        torn = true;
    }
    call.agree("read moments", [&] {
        read_in_blocks(call.source, loads, call.communicator.rank(), block->bytes());
    });
    torn = false;
}

}  // namespace swaplab::optim
