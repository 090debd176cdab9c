#include "checkpoint/rank_set.hpp"

#include <cstddef>

namespace swaplab::harness {
namespace {

constexpr int empty_slot = -1;
constexpr std::size_t smallest_table = 8;
constexpr std::size_t linear_probes = 9;

void insert(std::vector<int>& table, int rank) {
    const std::size_t mask = table.size() - 1;
    auto perturb = static_cast<std::size_t>(rank);
    std::size_t slot = perturb & mask;
    while (true) {
        const std::size_t probes = slot + linear_probes <= mask ? linear_probes : 0;
        for (std::size_t i = slot; i <= slot + probes; ++i) {
            if (table[i] == empty_slot) {
                table[i] = rank;
                return;
            }
        }
        perturb >>= 5U;
        slot = (slot * 5 + 1 + perturb) & mask;
    }
}

}  // namespace

std::vector<int> set_order(const std::vector<int>& ranks) {
    std::vector<int> table(smallest_table, empty_slot);
    std::size_t used = 0;
    for (const int rank : ranks) {
        insert(table, rank);
        ++used;
        if (used * 5 < (table.size() - 1) * 3) {
            continue;
        }
        std::size_t size = smallest_table;
        while (size <= used * 4) {
            size *= 2;
        }
        std::vector<int> grown(size, empty_slot);
        for (const int entry : table) {
            if (entry != empty_slot) {
                insert(grown, entry);
            }
        }
        table = std::move(grown);
    }
    std::vector<int> order;
    for (const int entry : table) {
        if (entry != empty_slot) {
            order.push_back(entry);
        }
    }
    return order;
}

}  // namespace swaplab::harness
