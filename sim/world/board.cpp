#include "world/board.hpp"

#include "swaplab/sim/error.hpp"

#include <boost/interprocess/anonymous_shared_memory.hpp>
#include <fmt/format.h>

#include <algorithm>

namespace swaplab::sim {
namespace {

static_assert(std::atomic<std::uint64_t>::is_always_lock_free);
static_assert(std::is_trivially_copyable_v<CallRecord>);

constexpr std::uint64_t page_bytes = 4096;

std::uint64_t up_to_page(std::uint64_t bytes) {
    return (bytes + page_bytes - 1) / page_bytes * page_bytes;
}

}  // namespace

/// Boost.Interprocess' mapping without a name: nothing to unlink, whoever is killed when.
struct Board::Mapping {
    explicit Mapping(std::uint64_t bytes)
        : region(boost::interprocess::anonymous_shared_memory(bytes)) {}
    boost::interprocess::mapped_region region;
};

Board::Board(const BoardSize& size) : size_(size) {
    const auto ranks = static_cast<std::uint64_t>(size.ranks);
    const std::uint64_t blocks = ranks * channels * 2;
    block_bytes_ = std::max(page_bytes, size.staging_bytes / blocks / page_bytes * page_bytes);
    seats_ = sizeof(Header);
    slots_ = seats_ + ranks * sizeof(Seat);
    reports_ = up_to_page(slots_ + ranks * channels * sizeof(Slot));
    blocks_ = reports_ + ranks * up_to_page(size.report_bytes);
    const std::uint64_t bytes = blocks_ + blocks * block_bytes_;
    try {
        mapping_ = std::make_unique<Mapping>(bytes);
    } catch (const boost::interprocess::interprocess_exception& error) {
        throw StorageError(
            fmt::format("cannot map {} bytes for a world of {} ranks: {}. WorldOptions: smaller "
                        "staging_bytes ({}) or value_bytes ({} per rank) may help",
                        bytes, size.ranks, error.what(), size.staging_bytes, size.report_bytes),
            {{"operation", "map world"},
             {"bytes", std::to_string(bytes)},
             {"reason", error.what()}});
    }
}

Board::~Board() = default;

std::byte* Board::at(std::uint64_t offset) const noexcept {
    return static_cast<std::byte*>(mapping_->region.get_address()) + offset;
}

Header& Board::header() const noexcept {
    return *reinterpret_cast<Header*>(at(0));
}

Seat& Board::seat(int rank) const noexcept {
    return reinterpret_cast<Seat*>(at(seats_))[rank];
}

Slot& Board::slot(int channel, int rank) const noexcept {
    return reinterpret_cast<Slot*>(at(slots_))[channel * size_.ranks + rank];
}

std::span<std::byte> Board::report(int rank) const noexcept {
    return {at(reports_ + static_cast<std::uint64_t>(rank) * up_to_page(size_.report_bytes)),
            size_.report_bytes};
}

std::span<std::byte> Board::block(int channel, int rank, std::size_t outbox) const {
    const auto index = static_cast<std::uint64_t>((channel * size_.ranks + rank) * 2) + outbox;
    return {at(blocks_ + index * block_bytes_), block_bytes_};
}

}  // namespace swaplab::sim
