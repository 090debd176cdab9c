/// The example of docs/simulator.md. Prints the race that it holds.

#include "swaplab/sim/buffer.hpp"
#include "swaplab/sim/simulated_device.hpp"
#include "swaplab/sim/stream.hpp"

#include <cstddef>
#include <cstdio>

using namespace swaplab::sim;

int main() {
    const auto device = make_simulated_device({.capacity_bytes = 1 << 20});
    {
        const Stream upload(*device, "upload");
        const Stream compute(*device, "compute");
        const DeviceBuffer slot(*device, 4096, upload, "slot");
        PinnedBuffer moments(*device, 4096, "moments");
        moments.write(0, 4096).bytes()[0] = std::byte{1};
        device->copy_async(slot.data(), moments.data(), 4096, CopyDirection::host_to_device,
                           upload);
        // Missing: an event recorded on upload that compute waits for.
        device->launch({"scale", {{slot.data(), 4096}}, {{slot.data(), 4096}}, {}, {}}, compute);
        device->synchronize(compute.ref());
        device->synchronize(upload.ref());
    }
    device->finish();
    for (const Finding& finding : device->findings()) {
        std::puts(finding.text.c_str());
    }
}
