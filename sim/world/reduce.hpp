#pragma once

/// Element-wise reductions, one member's block after the other.

#include "swaplab/sim/communicator.hpp"
#include "swaplab/sim/mutant.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>

namespace swaplab::sim {

/// Integers wrap around instead of overflowing.
inline std::int64_t sum_of(std::int64_t a, std::int64_t b) noexcept {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
}
template <class T>
T sum_of(T a, T b) noexcept {
    return a + b;
}

template <class T>
T reduced(T a, T b, ReduceOp op) noexcept {
    switch (op) {
        case ReduceOp::sum:
            return sum_of(a, b);
        case ReduceOp::min:
            return std::min(a, b);
        case ReduceOp::max:
            return std::max(a, b);
    }
    return a;
}

/// Leaves in `values` the first member's elements reduced with the second's, then the third's, ...
template <class T>
class Reduction final : public Incoming {
  public:
    Reduction(std::span<T> values, ReduceOp op) noexcept : values_(values), op_(op) {}

    void take(std::size_t member, std::uint64_t offset, std::span<const std::byte> block) override {
        T* const into = values_.data() + offset / sizeof(T);
        if (member == 0 && !SWAPLAB_MUTANT("world.reduce_on_top")) {
            std::memmove(into, block.data(), block.size());
            return;
        }
        for (std::size_t i = 0; i < block.size() / sizeof(T); ++i) {
            T value;
            std::memcpy(&value, block.data() + i * sizeof(T), sizeof(T));
            into[i] = reduced(into[i], value, op_);
        }
    }

  private:
    std::span<T> values_;
    ReduceOp op_;
};

}  // namespace swaplab::sim
