#pragma once

/// Owners of streams and events.

#include "swaplab/sim/device.hpp"

#include <optional>
#include <string_view>

namespace swaplab::sim {

/// Owns one stream of a device. Move-only; a moved-from Stream is empty and safe to destroy.
/// The device must outlive it. Destroying it lets issued work finish; `site` stands for that call.
class Stream {
  public:
    Stream(Device& device, std::string_view name, StreamKind kind = StreamKind::non_blocking,
           CallSite site = CallSite::here());
    ~Stream();
    Stream(Stream&& other) noexcept;
    Stream& operator=(Stream&& other) noexcept;

    /// The borrowed view; the Stream must not be moved-from.
    [[nodiscard]] StreamRef ref() const noexcept { return *ref_; }
    operator StreamRef() const noexcept { return *ref_; }  // NOLINT(google-explicit-constructor)

  private:
    std::optional<StreamRef> ref_;
    CallSite site_;
};

/// Owns one event of a device. Move-only, like Stream.
class Event {
  public:
    explicit Event(Device& device, CallSite site = CallSite::here());
    ~Event();
    Event(Event&& other) noexcept;
    Event& operator=(Event&& other) noexcept;

    [[nodiscard]] EventRef ref() const noexcept { return *ref_; }
    operator EventRef() const noexcept { return *ref_; }  // NOLINT(google-explicit-constructor)

  private:
    std::optional<EventRef> ref_;
    CallSite site_;
};

}  // namespace swaplab::sim
