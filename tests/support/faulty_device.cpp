#include "support/faulty_device.hpp"

#include <utility>

namespace swaplab::support {

using sim::CallSite;
using sim::EventRef;
using sim::StreamRef;

void* FaultyDevice::allocate(std::uint64_t bytes, StreamRef stream, std::string_view tag,
                             CallSite site) {
    return inner_.allocate(bytes, stream, tag, site);
}

void FaultyDevice::deallocate(void* pointer, StreamRef stream, CallSite site) noexcept {
    inner_.deallocate(pointer, stream, site);
}

void* FaultyDevice::allocate_pinned(std::uint64_t bytes, std::string_view tag, CallSite site) {
    before_("pinned");
    return inner_.allocate_pinned(bytes, tag, site);
}

void FaultyDevice::deallocate_pinned(void* pointer, CallSite site) noexcept {
    inner_.deallocate_pinned(pointer, site);
}

StreamRef FaultyDevice::create_stream(std::string_view name) {
    return inner_.create_stream(name);
}

void FaultyDevice::destroy_stream(StreamRef stream) noexcept {
    inner_.destroy_stream(stream);
}

EventRef FaultyDevice::create_event() {
    return inner_.create_event();
}

void FaultyDevice::destroy_event(EventRef event) noexcept {
    inner_.destroy_event(event);
}

void FaultyDevice::copy_async(void* destination, const void* source, std::uint64_t bytes,
                              sim::CopyDirection direction, StreamRef stream, CallSite site) {
    before_("copy");
    inner_.copy_async(destination, source, bytes, direction, stream, site);
}

void FaultyDevice::fill_async(void* destination, std::byte value, std::uint64_t bytes,
                              StreamRef stream, CallSite site) {
    inner_.fill_async(destination, value, bytes, stream, site);
}

void FaultyDevice::launch(sim::Kernel kernel, StreamRef stream, CallSite site) {
    before_("launch");
    inner_.launch(std::move(kernel), stream, site);
}

void FaultyDevice::record(EventRef event, StreamRef stream, CallSite site) {
    inner_.record(event, stream, site);
}

void FaultyDevice::wait(StreamRef stream, EventRef event, CallSite site) {
    inner_.wait(stream, event, site);
}

void FaultyDevice::synchronize(EventRef event, CallSite site) {
    inner_.synchronize(event, site);
}

bool FaultyDevice::query(EventRef event, CallSite site) {
    return inner_.query(event, site);
}

void FaultyDevice::host_access(const void* pointer, std::uint64_t bytes, sim::Access access,
                               CallSite site) {
    inner_.host_access(pointer, bytes, access, site);
}

}  // namespace swaplab::support
