#include "swaplab/sim/communicator.hpp"

#include "swaplab/sim/error.hpp"
#include "swaplab/sim/mutant.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace swaplab::sim {
namespace {

void check_root(int root, int size, CallSite site) {
    if (root < 0 || root >= size) {
        throw ArgumentError(fmt::format("root {} is not a rank of a world of {} ({})", root, size,
                                        format_site(site)),
                            {{"root", std::to_string(root)}, {"site", format_site(site)}});
    }
}

std::string_view name_of_reduce(ReduceOp op) {
    switch (op) {
        case ReduceOp::sum:
            return "all_reduce sum";
        case ReduceOp::min:
            return "all_reduce min";
        case ReduceOp::max:
            return "all_reduce max";
    }
    return "all_reduce sum";
}

// Integers wrap around instead of overflowing.
std::int64_t add(std::int64_t a, std::int64_t b) {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
}
double add(double a, double b) {
    return a + b;
}

template <class T>
T reduced(T a, T b, ReduceOp op) {
    switch (op) {
        case ReduceOp::sum:
            return add(a, b);
        case ReduceOp::min:
            return std::min(a, b);
        case ReduceOp::max:
            return std::max(a, b);
    }
    return a;
}

template <class T>
void reduce_in_rank_order(std::span<T> values, ReduceOp op, std::vector<Bytes> all) {
    if (SWAPLAB_MUTANT("world.reduce_backwards")) {
        std::reverse(all.begin(), all.end());
    }
    for (std::size_t rank = 0; rank < all.size(); ++rank) {
        for (std::size_t i = 0; i < values.size(); ++i) {
            T value;
            std::memcpy(&value, all[rank].data() + i * sizeof(T), sizeof(T));
            values[i] = rank == 0 ? value : reduced(values[i], value, op);
        }
    }
}

}  // namespace

void Communicator::barrier(CallSite site) {
    static_cast<void>(exchange({"barrier", "byte", 0, -1, site}, {}));
}

void Communicator::broadcast(std::span<std::byte> data, int root, CallSite site) {
    const std::span<std::byte> mine = root == rank() ? data : std::span<std::byte>{};
    const std::vector<Bytes> all = exchange({"broadcast", "byte", data.size(), root, site}, mine);
    check_root(root, size(), site);
    const Bytes& from = all[static_cast<std::size_t>(root)];
    std::copy(from.begin(), from.end(), data.begin());
}

std::vector<Bytes> Communicator::all_gather(std::span<const std::byte> mine, CallSite site) {
    return exchange({"all_gather", "byte", 0, -1, site}, mine);
}

std::vector<Bytes> Communicator::gather(std::span<const std::byte> mine, int root, CallSite site) {
    std::vector<Bytes> all = exchange({"gather", "byte", 0, root, site}, mine);
    check_root(root, size(), site);
    return rank() == root ? std::move(all) : std::vector<Bytes>{};
}

void Communicator::all_reduce(std::span<double> values, ReduceOp op, CallSite site) {
    reduce_in_rank_order(
        values, op,
        exchange({name_of_reduce(op), "float64", values.size(), -1, site}, std::as_bytes(values)));
}

void Communicator::all_reduce(std::span<std::int64_t> values, ReduceOp op, CallSite site) {
    reduce_in_rank_order(
        values, op,
        exchange({name_of_reduce(op), "int64", values.size(), -1, site}, std::as_bytes(values)));
}

std::vector<std::string> Communicator::all_gather_object(const std::string& mine, CallSite site) {
    const std::vector<Bytes> all = exchange({"all_gather_object", "object", 0, -1, site},
                                            std::as_bytes(std::span(mine.data(), mine.size())));
    std::vector<std::string> texts;
    for (const Bytes& bytes : all) {
        std::string text(bytes.size(), '\0');
        if (!bytes.empty()) {
            std::memcpy(text.data(), bytes.data(), bytes.size());
        }
        texts.push_back(std::move(text));
    }
    return texts;
}

}  // namespace swaplab::sim
