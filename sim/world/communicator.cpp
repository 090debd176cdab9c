#include "swaplab/sim/communicator.hpp"

#include "world/reduce.hpp"

#include "swaplab/sim/error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <numeric>

namespace swaplab::sim {
namespace {

void check_rank(std::string_view what, int rank, int size, CallSite site) {
    if (rank < 0 || rank >= size) {
        throw ArgumentError(
            fmt::format("{} {} is not a rank of a world of {} ({})", what, rank, size,
                        format_site(site)),
            {{std::string(what), std::to_string(rank)}, {"site", format_site(site)}});
    }
}

void check_size(std::string_view what, std::size_t found, std::size_t expected, CallSite site) {
    if (found != expected) {
        throw ArgumentError(
            fmt::format("{}: {} given, {} needed ({})", what, found, expected, format_site(site)),
            {{"parameter", std::string(what)},
             {"expected", std::to_string(expected)},
             {"found", std::to_string(found)},
             {"site", format_site(site)}});
    }
}

template <class T>
constexpr std::string_view dtype_of() {
    if constexpr (std::is_same_v<T, float>) {
        return "float32";
    } else if constexpr (std::is_same_v<T, double>) {
        return "float64";
    } else {
        return "int64";
    }
}

std::string name_of(std::string_view collective, ReduceOp op) {
    constexpr std::string_view names[] = {"sum", "min", "max"};
    return fmt::format("{} {}", collective, names[static_cast<std::size_t>(op)]);
}

class Nothing final : public Incoming {
    void take(std::size_t, std::uint64_t, std::span<const std::byte>) override {}
};

/// Keeps what each member gives, whatever its size.
class Parts final : public Incoming {
  public:
    explicit Parts(std::size_t members) : parts_(members) {}
    void expect(std::size_t member, std::uint64_t bytes) override { parts_[member].resize(bytes); }
    void take(std::size_t member, std::uint64_t offset, std::span<const std::byte> block) override {
        std::copy(block.begin(), block.end(),
                  parts_[member].begin() + static_cast<std::ptrdiff_t>(offset));
    }
    [[nodiscard]] std::vector<Bytes>& all() noexcept { return parts_; }

  private:
    std::vector<Bytes> parts_;
};

/// Fills memory that is there already: member m's bytes begin at m * stride.
class Filling final : public Incoming {
  public:
    Filling(std::span<std::byte> all, std::size_t stride) noexcept : all_(all), stride_(stride) {}
    void take(std::size_t member, std::uint64_t offset, std::span<const std::byte> block) override {
        std::memmove(all_.data() + member * stride_ + offset, block.data(), block.size());
    }

  private:
    std::span<std::byte> all_;
    std::size_t stride_;
};

std::vector<std::string> texts_of(const std::vector<Bytes>& all) {
    std::vector<std::string> texts;
    for (const Bytes& bytes : all) {
        std::string text(bytes.size(), '\0');
        std::transform(bytes.begin(), bytes.end(), text.begin(),
                       [](std::byte byte) { return static_cast<char>(byte); });
        texts.push_back(std::move(text));
    }
    return texts;
}

std::span<const std::byte> bytes_of(const std::string& text) {
    return std::as_bytes(std::span(text.data(), text.size()));
}

}  // namespace

CollectiveCall Communicator::next_call(std::string_view operation, std::string_view dtype,
                                       CallSite site) {
    CollectiveCall call;
    call.operation = operation;
    call.dtype = dtype;
    call.site = site;
    call.group = group_;
    call.sequence = ++sequence_;
    return call;
}

void Communicator::run(const CollectiveCall& call, const Outgoing& mine, Incoming& theirs) {
    if (everybody_.empty()) {
        everybody_.resize(static_cast<std::size_t>(size()));
        std::iota(everybody_.begin(), everybody_.end(), 0);
    }
    exchange(call, everybody_, mine, theirs);
}

void Communicator::barrier(CallSite site) {
    Nothing nothing;
    run(next_call("barrier", "byte", site), {}, nothing);
}

void Communicator::broadcast(std::span<std::byte> data, int root, CallSite site) {
    CollectiveCall call = next_call("broadcast", "byte", site);
    call.count = data.size();
    call.root = root;
    Filling filling(data, 0);
    run(call, {root == rank() ? data : std::span<std::byte>{}, {}}, filling);
    check_rank("root", root, size(), site);
}

std::vector<Bytes> Communicator::all_gather(std::span<const std::byte> mine, CallSite site) {
    Parts parts(static_cast<std::size_t>(size()));
    run(next_call("all_gather", "byte", site), {mine, {}}, parts);
    return std::move(parts.all());
}

void Communicator::all_gather_into(std::span<const std::byte> mine, std::span<std::byte> all,
                                   CallSite site) {
    check_size("bytes of all_gather_into", all.size(),
               mine.size() * static_cast<std::size_t>(size()), site);
    CollectiveCall call = next_call("all_gather_into", "byte", site);
    call.count = mine.size();
    Filling filling(all, mine.size());
    run(call, {mine, {}}, filling);
}

std::vector<Bytes> Communicator::gather(std::span<const std::byte> mine, int root, CallSite site) {
    CollectiveCall call = next_call("gather", "byte", site);
    call.root = root;
    const auto members = static_cast<std::size_t>(size());
    std::vector<std::uint64_t> sizes(members, 0);
    if (root >= 0 && root < size()) {
        sizes[static_cast<std::size_t>(root)] = mine.size();
    }
    Parts parts(members);
    run(call, {sizes == std::vector<std::uint64_t>(members, 0) ? mine.first(0) : mine, sizes},
        parts);
    check_rank("root", root, size(), site);
    return rank() == root ? std::move(parts.all()) : std::vector<Bytes>{};
}

namespace {

/// Parts of several ranks, one after the other, as Outgoing wants them.
struct Joined {
    explicit Joined(std::span<const Bytes> parts) {
        for (const Bytes& part : parts) {
            sizes.push_back(part.size());
            bytes.insert(bytes.end(), part.begin(), part.end());
        }
    }
    std::vector<std::uint64_t> sizes;
    Bytes bytes;
};

}  // namespace

Bytes Communicator::scatter(std::span<const Bytes> parts, int root, CallSite site) {
    const auto members = static_cast<std::size_t>(size());
    check_size("parts of scatter", parts.size(), rank() == root ? members : 0, site);
    CollectiveCall call = next_call("scatter", "byte", site);
    call.root = root;
    const Joined joined(parts);
    Parts received(members);
    run(call, {joined.bytes, joined.sizes}, received);
    check_rank("root", root, size(), site);
    return std::move(received.all()[static_cast<std::size_t>(root)]);
}

std::vector<Bytes> Communicator::all_to_all(std::span<const Bytes> parts, CallSite site) {
    const auto members = static_cast<std::size_t>(size());
    check_size("parts of all_to_all", parts.size(), members, site);
    const Joined joined(parts);
    Parts received(members);
    run(next_call("all_to_all", "byte", site), {joined.bytes, joined.sizes}, received);
    return std::move(received.all());
}

template <class T>
void Communicator::all_reduce_of(std::span<T> values, ReduceOp op, CallSite site) {
    const std::string operation = name_of("all_reduce", op);
    CollectiveCall call = next_call(operation, dtype_of<T>(), site);
    call.count = values.size();
    Reduction<T> reduction(values, op);
    run(call, {std::as_bytes(values), {}}, reduction);
}

void Communicator::all_reduce(std::span<float> values, ReduceOp op, CallSite site) {
    all_reduce_of(values, op, site);
}

void Communicator::all_reduce(std::span<double> values, ReduceOp op, CallSite site) {
    all_reduce_of(values, op, site);
}

void Communicator::all_reduce(std::span<std::int64_t> values, ReduceOp op, CallSite site) {
    all_reduce_of(values, op, site);
}

template <class T>
void Communicator::reduce_scatter_of(std::span<const T> values, std::span<T> mine, ReduceOp op,
                                     CallSite site) {
    const auto members = static_cast<std::size_t>(size());
    check_size("elements of reduce_scatter", values.size(), mine.size() * members, site);
    const std::string operation = name_of("reduce_scatter", op);
    CollectiveCall call = next_call(operation, dtype_of<T>(), site);
    call.count = mine.size();
    const std::vector<std::uint64_t> sizes(members, mine.size_bytes());
    Reduction<T> reduction(mine, op);
    run(call, {std::as_bytes(values), sizes}, reduction);
}

void Communicator::reduce_scatter(std::span<const float> values, std::span<float> mine, ReduceOp op,
                                  CallSite site) {
    reduce_scatter_of(values, mine, op, site);
}

void Communicator::reduce_scatter(std::span<const double> values, std::span<double> mine,
                                  ReduceOp op, CallSite site) {
    reduce_scatter_of(values, mine, op, site);
}

void Communicator::reduce_scatter(std::span<const std::int64_t> values,
                                  std::span<std::int64_t> mine, ReduceOp op, CallSite site) {
    reduce_scatter_of(values, mine, op, site);
}

std::vector<std::string> Communicator::all_gather_object(const std::string& mine,
                                                         std::string_view purpose, CallSite site) {
    CollectiveCall call = next_call("all_gather_object", "object", site);
    call.purpose = purpose;
    Parts parts(static_cast<std::size_t>(size()));
    run(call, {bytes_of(mine), {}}, parts);
    return texts_of(parts.all());
}

std::vector<std::string> Communicator::gather_object(const std::string& mine, int root,
                                                     CallSite site) {
    return texts_of(gather(bytes_of(mine), root, site));
}

void Communicator::exchange_with(int other, int root, const Outgoing& mine, Incoming& theirs,
                                 CallSite site) {
    check_rank("rank", other, size(), site);
    check_size("ranks of point_to_point", other == rank() ? 1 : 2, 2, site);
    sequences_of_pairs_.resize(static_cast<std::size_t>(size()));
    CollectiveCall call;
    call.operation = "point_to_point";
    call.dtype = "byte";
    call.root = root;
    call.site = site;
    call.group = group_;
    call.sequence = ++sequences_of_pairs_[static_cast<std::size_t>(other)];
    const int members[] = {std::min(rank(), other), std::max(rank(), other)};
    exchange(call, members, mine, theirs);
}

void Communicator::send(std::span<const std::byte> data, int to, CallSite site) {
    const std::uint64_t to_first = rank() < to ? 0 : data.size();
    const std::uint64_t sizes[] = {to_first, data.size() - to_first};
    Nothing nothing;
    exchange_with(to, rank(), {data, sizes}, nothing, site);
}

Bytes Communicator::receive(int from, CallSite site) {
    Parts parts(2);
    exchange_with(from, from, {}, parts, site);
    return std::move(parts.all()[from < rank() ? 0 : 1]);
}

}  // namespace swaplab::sim
