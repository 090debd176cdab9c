#include "swaplab/sim/explore.hpp"

#include "base/choice_tree.hpp"

namespace swaplab::sim {
Exploration explore(const SimulatedDeviceOptions& options,
                    const std::function<void(SimulatedDevice&)>& program, std::uint64_t limit) {
    ChoiceTree tree;
    SimulatedDeviceOptions chosen = options;
    chosen.schedule = Schedule::chosen;
    chosen.choose = [&tree](std::size_t count) { return tree.choose(count); };
    Exploration exploration;
    while (exploration.orders < limit && !exploration.complete) {
        const auto device = make_simulated_device(chosen);
        program(*device);
        device->finish();
        ++exploration.orders;
        exploration.complete = !tree.next();
    }
    return exploration;
}

}  // namespace swaplab::sim
