#pragma once

/// device.schedule = "exhaustive": the story once for each order of what its devices do.

#include "scenario/language/model.hpp"

#include <cstddef>
#include <vector>

namespace swaplab::harness::scenario {

/// A story with more orders is none to try them all on.
inline constexpr std::size_t orders_max = 1000;

/// The choices of one rank of one process.
struct OrderRecord {
    std::vector<OrderChoice> begin;  ///< to be repeated; then the first way is taken
    std::vector<OrderChoice> taken;

    void begin_as(const Orders& orders, std::size_t process, int rank);
    /// Which of `count` ways. Throws DeviceError where the same beginning leads to another number
    /// of ways: the story changes by itself.
    [[nodiscard]] std::size_t choose(std::size_t count);
};

/// The order to try after the one that was `taken`: depth first, last choice first. Empty: that was
/// the last one.
[[nodiscard]] Orders next_orders(Orders taken);

/// Whether any process of the story has the schedule.
/// How many orders a story has at least, of which one is known: each choice could have been
/// another.
[[nodiscard]] std::size_t fewest_orders(const Orders& taken);

[[nodiscard]] bool has_every_order(const Run& run);

}  // namespace swaplab::harness::scenario
