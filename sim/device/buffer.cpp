#include "swaplab/sim/buffer.hpp"

#include "swaplab/sim/mutant.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <new>
#include <utility>

namespace swaplab::sim {
namespace {

void check_range(std::uint64_t offset_bytes, std::uint64_t bytes, std::uint64_t size_bytes,
                 CallSite site) {
    if (offset_bytes > size_bytes || bytes > size_bytes - offset_bytes) {
        throw ArgumentError(
            fmt::format("host access of {} B at offset {} in a pinned buffer of {} B ({})", bytes,
                        offset_bytes, size_bytes, format_site(site)),
            {{"operation", "host_access"},
             {"expected", fmt::format("{} B", size_bytes)},
             {"found", fmt::format("{} B at {}", bytes, offset_bytes)},
             {"site", format_site(site)}});
    }
}

void check_host_capacity(Device& device, std::uint64_t bytes, std::string_view tag, CallSite site) {
    const MemoryLedger& ledger = device.ledger();
    const std::uint64_t charged = ledger.now(MemoryKind::host);
    const std::uint64_t capacity = ledger.host_capacity_bytes();
    if ((charged <= capacity && bytes <= capacity - charged) ||
        SWAPLAB_MUTANT("sim.host_capacity_unchecked")) {
        return;
    }
    constexpr std::size_t holders_shown_max = 10;
    OutOfDeviceMemory::Report report;
    report.rank = device.rank();
    report.memory = std::string(name_of(MemoryKind::host));
    report.tag = std::string(tag);
    report.requested_bytes = bytes;
    report.rounded_bytes = bytes;
    report.charged_bytes = charged;
    report.capacity_bytes = capacity;
    report.largest_hole_bytes = report.free_bytes();
    report.holders = ledger.holders(MemoryKind::host, holders_shown_max);
    report.by_tag = ledger.by_tag(MemoryKind::host);
    report.site = site;
    throw OutOfDeviceMemory(std::move(report));
}

}  // namespace

DeviceBuffer::DeviceBuffer(Device& device, std::uint64_t bytes, StreamRef stream,
                           std::string_view tag, CallSite site)
    : data_(bytes == 0 ? nullptr
                       : static_cast<std::byte*>(device.allocate(bytes, stream, tag, site))),
      bytes_(bytes),
      stream_(stream) {}

DeviceBuffer::~DeviceBuffer() {
    if (data_ != nullptr) {
        stream_->device().deallocate(data_, *stream_);
    }
}

DeviceBuffer::DeviceBuffer(DeviceBuffer&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)),
      stream_(std::exchange(other.stream_, std::nullopt)) {}

DeviceBuffer& DeviceBuffer::operator=(DeviceBuffer&& other) noexcept {
    DeviceBuffer taken(std::move(other));
    std::swap(data_, taken.data_);
    std::swap(bytes_, taken.bytes_);
    std::swap(stream_, taken.stream_);
    return *this;
}

PinnedBuffer::PinnedBuffer(Device& device, std::uint64_t bytes, std::string_view tag, CallSite site)
    : device_(&device),
      data_(bytes == 0 ? nullptr
                       : static_cast<std::byte*>(device.allocate_pinned(bytes, tag, site))),
      bytes_(bytes) {}

PinnedBuffer::~PinnedBuffer() {
    if (data_ != nullptr) {
        device_->deallocate_pinned(data_);
    }
}

PinnedBuffer::PinnedBuffer(PinnedBuffer&& other) noexcept
    : device_(std::exchange(other.device_, nullptr)),
      data_(std::exchange(other.data_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)) {}

PinnedBuffer& PinnedBuffer::operator=(PinnedBuffer&& other) noexcept {
    PinnedBuffer taken(std::move(other));
    std::swap(device_, taken.device_);
    std::swap(data_, taken.data_);
    std::swap(bytes_, taken.bytes_);
    return *this;
}

HostReadScope PinnedBuffer::read(std::uint64_t offset_bytes, std::uint64_t bytes,
                                 CallSite site) const {
    check_range(offset_bytes, bytes, bytes_, site);
    if (bytes != 0) {
        device_->host_access(data_ + offset_bytes, bytes, Access::read, site);
    }
    return HostReadScope({data_ + offset_bytes, bytes});
}

HostWriteScope PinnedBuffer::write(std::uint64_t offset_bytes, std::uint64_t bytes, CallSite site) {
    check_range(offset_bytes, bytes, bytes_, site);
    if (bytes != 0) {
        device_->host_access(data_ + offset_bytes, bytes, Access::write, site);
    }
    return HostWriteScope({data_ + offset_bytes, bytes});
}

HostBuffer::HostBuffer(Device& device, std::uint64_t bytes, std::string_view tag, CallSite site) {
    if (bytes == 0) {
        return;
    }
    check_host_capacity(device, bytes, tag, site);
    data_ = static_cast<std::byte*>(std::calloc(bytes, 1));
    if (data_ == nullptr) {
        throw std::bad_alloc();
    }
    size_ = bytes;
    ledger_ = &device.ledger();
    id_ = ledger_->charge(MemoryKind::host, bytes, bytes, tag, site);
    ledger_->occupy(id_);
}

HostBuffer::~HostBuffer() {
    if (data_ != nullptr) {
        ledger_->discharge(id_);
        ledger_->vacate(id_);
        std::free(data_);
    }
}

HostBuffer::HostBuffer(HostBuffer&& other) noexcept
    : ledger_(std::exchange(other.ledger_, nullptr)),
      id_(std::exchange(other.id_, 0)),
      data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)) {}

HostBuffer& HostBuffer::operator=(HostBuffer&& other) noexcept {
    HostBuffer taken(std::move(other));
    std::swap(ledger_, taken.ledger_);
    std::swap(id_, taken.id_);
    std::swap(data_, taken.data_);
    std::swap(size_, taken.size_);
    return *this;
}

}  // namespace swaplab::sim
