#include "swaplab/sim/device.hpp"

#include "swaplab/sim/mutant.hpp"
#include "swaplab/sim/stream.hpp"

#include <exception>
#include <optional>

namespace swaplab::sim {

// Whoever waits gives back memory that the work uses, also when an exception takes it out of here:
// a call that failed once is made once more.
void Device::synchronize(StreamRef stream, CallSite site) {
    std::exception_ptr failure;
    const auto insist = [&failure](const auto& call) {
        try {
            call();
        } catch (...) {
            failure = std::current_exception();
            if (SWAPLAB_MUTANT("device.gives_up_waiting")) {
                throw;
            }
            call();
        }
    };
    std::optional<Event> event;
    insist([&] { event.emplace(*this); });
    insist([&] { record(event->ref(), stream, site); });
    insist([&] { synchronize(event->ref(), site); });
    if (failure) {
        std::rethrow_exception(failure);
    }
}

void* Device::allocate_outside_pool(std::uint64_t bytes, StreamRef stream, std::string_view tag,
                                    CallSite site) {
    return allocate(bytes, stream, tag, site);
}

}  // namespace swaplab::sim
