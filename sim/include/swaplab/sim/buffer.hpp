#pragma once

/// Owners of device and pinned memory. None copies itself: copying is Device::copy_async.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "swaplab/sim/device.hpp"

namespace swaplab::sim {

/// Device memory, freed in the order of the stream it was allocated on (or last moved to by
/// set_stream). Move-only; moved-from = empty. The device and the stream must outlive it.
/// A buffer of 0 bytes owns nothing and its data() is nullptr.
class DeviceBuffer {
  public:
    DeviceBuffer() noexcept = default;
    DeviceBuffer(Device& device, std::uint64_t bytes, StreamRef stream, std::string_view tag,
                 CallSite site = CallSite::here());
    ~DeviceBuffer();
    DeviceBuffer(DeviceBuffer&& other) noexcept;
    DeviceBuffer& operator=(DeviceBuffer&& other) noexcept;

    /// A device address: for copies and kernels, never for the host.
    [[nodiscard]] std::byte* data() const noexcept { return data_; }
    [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }
    /// The stream whose order the memory will be freed in.
    void set_stream(StreamRef stream) noexcept { stream_ = stream; }

  private:
    std::byte* data_ = nullptr;
    std::uint64_t bytes_ = 0;
    std::optional<StreamRef> stream_;
};

/// A host view of a part of a pinned buffer, announced to the device when made. The span must not
/// be used after the scope ends.
template <class Byte>
class HostAccessScope {
  public:
    explicit HostAccessScope(std::span<Byte> bytes) noexcept : bytes_(bytes) {}
    HostAccessScope(const HostAccessScope&) = delete;
    HostAccessScope& operator=(const HostAccessScope&) = delete;

    [[nodiscard]] std::span<Byte> bytes() const noexcept { return bytes_; }

  private:
    std::span<Byte> bytes_;
};

using HostReadScope = HostAccessScope<const std::byte>;
using HostWriteScope = HostAccessScope<std::byte>;

/// Page-locked host memory, zero-filled at first. Move-only; moved-from = empty. The host reads and
/// writes it through scopes, so that accesses racing with copies are found. A buffer of 0 bytes
/// owns nothing.
class PinnedBuffer {
  public:
    PinnedBuffer() noexcept = default;
    PinnedBuffer(Device& device, std::uint64_t bytes, std::string_view tag,
                 CallSite site = CallSite::here());
    ~PinnedBuffer();
    PinnedBuffer(PinnedBuffer&& other) noexcept;
    PinnedBuffer& operator=(PinnedBuffer&& other) noexcept;

    /// For copies and for identity; the host reads and writes through the scopes below.
    [[nodiscard]] std::byte* data() const noexcept { return data_; }
    [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }

    [[nodiscard]] HostReadScope read(std::uint64_t offset_bytes, std::uint64_t bytes,
                                     CallSite site = CallSite::here()) const;
    [[nodiscard]] HostWriteScope write(std::uint64_t offset_bytes, std::uint64_t bytes,
                                       CallSite site = CallSite::here());

  private:
    Device* device_ = nullptr;
    std::byte* data_ = nullptr;
    std::uint64_t bytes_ = 0;
};

/// Ordinary host memory on the ledger, zero-filled: staging, shadows, snapshots. Move-only.
class HostBuffer {
  public:
    HostBuffer() noexcept = default;
    HostBuffer(Device& device, std::uint64_t bytes, std::string_view tag,
               CallSite site = CallSite::here());
    ~HostBuffer();
    HostBuffer(HostBuffer&& other) noexcept;
    HostBuffer& operator=(HostBuffer&& other) noexcept;

    [[nodiscard]] std::span<std::byte> bytes() const noexcept { return {data_, size_}; }

  private:
    MemoryLedger* ledger_ = nullptr;
    MemoryLedger::Id id_ = 0;
    std::byte* data_ = nullptr;
    std::uint64_t size_ = 0;
};

}  // namespace swaplab::sim
