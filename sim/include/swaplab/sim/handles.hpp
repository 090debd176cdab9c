#pragma once

/// Borrowed places in a device's queues of work. Owners are in stream.hpp.

#include <cstddef>
#include <cstdint>

namespace swaplab::sim {

class Device;

/// A borrowed stream: a FIFO queue of device work. Copy freely; must not outlive its Stream.
/// Not constructible from 0 or nullptr: whoever means the default stream says default_stream().
class StreamRef {
  public:
    StreamRef() = delete;
    StreamRef(int) = delete;
    StreamRef(std::nullptr_t) = delete;
    /// For Device implementations only. `handle` is the device's own name for the stream; handles
    /// may be reused after destruction.
    StreamRef(Device& device, std::uint64_t handle) noexcept : device_(&device), handle_(handle) {}

    [[nodiscard]] Device& device() const noexcept { return *device_; }
    [[nodiscard]] std::uint64_t handle() const noexcept { return handle_; }
    friend bool operator==(StreamRef, StreamRef) = default;

  private:
    Device* device_;
    std::uint64_t handle_;
};

/// A borrowed event: a marker that work may be ordered after. Copy freely; must not outlive its
/// Event.
class EventRef {
  public:
    EventRef() = delete;
    EventRef(int) = delete;
    EventRef(std::nullptr_t) = delete;
    /// For Device implementations only.
    EventRef(Device& device, std::uint64_t handle) noexcept : device_(&device), handle_(handle) {}

    [[nodiscard]] Device& device() const noexcept { return *device_; }
    [[nodiscard]] std::uint64_t handle() const noexcept { return handle_; }
    friend bool operator==(EventRef, EventRef) = default;

  private:
    Device* device_;
    std::uint64_t handle_;
};

}  // namespace swaplab::sim
