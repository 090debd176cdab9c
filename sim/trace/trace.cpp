#include "swaplab/sim/device_trace.hpp"

#include <utility>

namespace swaplab::sim {

DeviceTrace make_trace(const SimulatedDeviceOptions& options, DeviceProgram program,
                       const SimulatedDevice& device) {
    DeviceTrace trace{options, std::move(program), device.execution_digest()};
    trace.options.choose = {};
    trace.options.record = device.execution_record();
    trace.options.chances = device.chances();
    return trace;
}

std::unique_ptr<SimulatedDevice> replay(const DeviceTrace& trace) {
    SimulatedDeviceOptions options = trace.options;
    options.schedule = Schedule::replay;
    auto device = make_simulated_device(options);
    run_program(trace.program, *device);
    device->finish();
    return device;
}

}  // namespace swaplab::sim
