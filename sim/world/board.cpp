#include "world/board.hpp"

#include "swaplab/sim/error.hpp"

#include <boost/interprocess/anonymous_shared_memory.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <utility>

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
    explicit Mapping(boost::interprocess::mapped_region mapped) : region(std::move(mapped)) {}
    boost::interprocess::mapped_region region;
};

namespace {

/// A descriptor as what Boost.Interprocess maps.
struct MappableFile {
    int file;
    [[nodiscard]] boost::interprocess::mapping_handle_t get_mapping_handle() const {
        return boost::interprocess::ipcdetail::mapping_handle_from_file_handle(file);
    }
};

boost::interprocess::mapped_region map(int file, std::uint64_t bytes) {
    if (file == Board::no_file) {
        return boost::interprocess::anonymous_shared_memory(bytes);
    }
    return {MappableFile{file}, boost::interprocess::read_write, 0, bytes};
}

}  // namespace

BoardLayout::BoardLayout(const BoardSize& size) noexcept {
    const auto ranks = static_cast<std::uint64_t>(size.ranks);
    const std::uint64_t outboxes = ranks * channels * 2;
    block_bytes = std::max(page_bytes, size.staging_bytes / outboxes / page_bytes * page_bytes);
    seats = sizeof(Header);
    slots = seats + ranks * sizeof(Seat);
    reports = up_to_page(slots + ranks * channels * sizeof(Slot));
    blocks = reports + ranks * up_to_page(size.report_bytes);
    bytes = blocks + outboxes * block_bytes;
}

Board::Board(const BoardSize& size, int file) : size_(size), layout_(size) {
    try {
        mapping_ = std::make_unique<Mapping>(map(file, layout_.bytes));
    } catch (const boost::interprocess::interprocess_exception& error) {
        throw StorageError(
            fmt::format("cannot map {} bytes for a world of {} ranks: {}. WorldOptions: smaller "
                        "staging_bytes ({}) or value_bytes ({} per rank) may help",
                        layout_.bytes, size.ranks, error.what(), size.staging_bytes,
                        size.report_bytes),
            {{"operation", "map world"},
             {"bytes", std::to_string(layout_.bytes)},
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
    return reinterpret_cast<Seat*>(at(layout_.seats))[rank];
}

Slot& Board::slot(int channel, int rank) const noexcept {
    return reinterpret_cast<Slot*>(at(layout_.slots))[channel * size_.ranks + rank];
}

std::span<std::byte> Board::report(int rank) const noexcept {
    return {at(layout_.reports + static_cast<std::uint64_t>(rank) * up_to_page(size_.report_bytes)),
            size_.report_bytes};
}

std::span<std::byte> Board::block(int channel, int rank, std::size_t outbox) const {
    const auto index = static_cast<std::uint64_t>((channel * size_.ranks + rank) * 2) + outbox;
    return {at(layout_.blocks + index * layout_.block_bytes), layout_.block_bytes};
}

}  // namespace swaplab::sim
