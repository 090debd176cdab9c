#pragma once

/// Random programs for a simulated device as lists of steps, correct by construction, and what is
/// wrong with them once a step is taken away: by plain reachability, without vector clocks.

#include "swaplab/sim/random.hpp"
#include "swaplab/sim/simulated_device.hpp"

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace swaplab::sim::race_programs {

/// `end` - `begin` bytes of one allocation. Allocations have numbers, never used again.
struct Use {
    std::size_t memory = 0;
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    bool writes = false;
};

enum class Op {
    allocate,
    free,
    allocate_pinned,
    free_pinned,
    upload,
    download,
    copy,
    fill,
    add,
    record,
    wait,
    synchronize,
    host_read,
    host_write,
};

struct Step {
    Op op{};
    std::optional<std::size_t> stream;  ///< none: the host
    std::size_t event = 0;              ///< of record, wait, synchronize
    std::vector<Use> uses;              ///< of copies the source first

    [[nodiscard]] bool is_edge() const { return op == Op::wait || op == Op::synchronize; }
};

struct Program {
    std::size_t stream_count = 0;
    std::size_t event_count = 0;
    std::vector<Step> steps;
};

/// Every conflict is ordered, every byte written before it is read, everything freed at the end.
[[nodiscard]] Program make_correct(std::uint64_t seed);

/// Two steps that touch the same bytes of `memory`, one of them writing, in no order.
struct Unordered {
    std::size_t earlier = 0;
    std::size_t later = 0;
    std::size_t memory = 0;
    friend auto operator<=>(const Unordered&, const Unordered&) = default;
};
[[nodiscard]] std::set<Unordered> unordered_pairs(const Program& program);

[[nodiscard]] std::string stream_name(std::size_t stream);
[[nodiscard]] std::string tag_of(std::size_t memory);

/// Runs it; the call site of step i is steps:i. Returns the bytes that the host has read.
std::vector<std::byte> run(const Program& program, Device& device);

}  // namespace swaplab::sim::race_programs
