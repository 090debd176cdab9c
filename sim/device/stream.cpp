#include "swaplab/sim/stream.hpp"

#include <utility>

namespace swaplab::sim {

Stream::Stream(Device& device, std::string_view name, StreamKind kind)
    : ref_(device.create_stream(name, kind)) {}

Stream::~Stream() {
    if (ref_) {
        ref_->device().destroy_stream(*ref_);
    }
}

Stream::Stream(Stream&& other) noexcept : ref_(std::exchange(other.ref_, std::nullopt)) {}

Stream& Stream::operator=(Stream&& other) noexcept {
    Stream taken(std::move(other));
    std::swap(ref_, taken.ref_);
    return *this;
}

Event::Event(Device& device) : ref_(device.create_event()) {}

Event::~Event() {
    if (ref_) {
        ref_->device().destroy_event(*ref_);
    }
}

Event::Event(Event&& other) noexcept : ref_(std::exchange(other.ref_, std::nullopt)) {}

Event& Event::operator=(Event&& other) noexcept {
    Event taken(std::move(other));
    std::swap(ref_, taken.ref_);
    return *this;
}

}  // namespace swaplab::sim
