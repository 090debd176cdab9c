#include "swaplab/sim/stream.hpp"

#include <utility>

namespace swaplab::sim {

Stream::Stream(Device& device, std::string_view name, StreamKind kind, CallSite site)
    : ref_(device.create_stream(name, kind)), site_(site) {}

Stream::~Stream() {
    if (ref_) {
        ref_->device().destroy_stream(*ref_, site_);
    }
}

Stream::Stream(Stream&& other) noexcept
    : ref_(std::exchange(other.ref_, std::nullopt)), site_(other.site_) {}

Stream& Stream::operator=(Stream&& other) noexcept {
    Stream taken(std::move(other));
    std::swap(ref_, taken.ref_);
    std::swap(site_, taken.site_);
    return *this;
}

Event::Event(Device& device, CallSite site) : ref_(device.create_event()), site_(site) {}

Event::~Event() {
    if (ref_) {
        ref_->device().destroy_event(*ref_, site_);
    }
}

Event::Event(Event&& other) noexcept
    : ref_(std::exchange(other.ref_, std::nullopt)), site_(other.site_) {}

Event& Event::operator=(Event&& other) noexcept {
    Event taken(std::move(other));
    std::swap(ref_, taken.ref_);
    std::swap(site_, taken.site_);
    return *this;
}

}  // namespace swaplab::sim
