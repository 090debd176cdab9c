#include "swaplab/sim/device.hpp"

#include "swaplab/sim/stream.hpp"

namespace swaplab::sim {

void Device::synchronize(StreamRef stream, CallSite site) {
    const Event event(*this);
    record(event, stream, site);
    synchronize(event.ref(), site);
}

}  // namespace swaplab::sim
