#include "memory_programs.hpp"

#include "swaplab/sim/random.hpp"
#include "swaplab/sim/stream.hpp"

#include <string>
#include <vector>

namespace swaplab::sim {
namespace {

class Actor {
  public:
    Actor(SimulatedDevice& device, const MemoryProgram& program)
        : device_(device), rng_(program.seed) {
        for (int i = 0; i < program.streams; ++i) {
            streams_.emplace_back(device, "stream " + std::to_string(i));
        }
    }

    void act() {
        switch (rng_.below(10)) {
            case 0:
            case 1:
            case 2:
                return allocate();
            case 3:
            case 4:
            case 5:
                return live_.empty() ? allocate() : free(rng_.below(live_.size()), any_stream());
            case 6:
            case 7:
                return order(any_stream(), any_stream());
            case 8:
                return wait_for(any_stream());
            default:
                return replace(rng_.below(streams_.size()));
        }
    }

    void free_all() {
        while (!live_.empty()) {
            free(live_.size() - 1, streams_.front());
        }
    }

  private:
    const Stream& any_stream() { return streams_[rng_.below(streams_.size())]; }

    void allocate() {
        const StreamRef stream = any_stream();
        const std::uint64_t bytes = 1 + rng_.below(1000);
        const std::string tag(1, static_cast<char>('a' + rng_.below(4)));
        live_.push_back(device_.allocate(bytes, stream, tag, CallSite::here()));
    }

    void free(std::size_t which, const Stream& stream) {
        device_.deallocate(live_[which], stream, CallSite::here());
        live_.erase(live_.begin() + static_cast<std::ptrdiff_t>(which));
    }

    void order(const Stream& before, const Stream& after) {
        const Event event(device_);
        device_.record(event, before);
        device_.wait(after, event);
    }

    void wait_for(const Stream& stream) {
        const Event event(device_);
        device_.record(event, stream);
        if (rng_.below(2) == 0) {
            return device_.synchronize(event.ref());
        }
        while (!device_.query(event)) {
        }
    }

    void replace(std::size_t which) { streams_[which] = Stream(device_, "another stream"); }

    SimulatedDevice& device_;
    Rng rng_;
    std::vector<Stream> streams_;
    std::vector<void*> live_;
};

}  // namespace

void run_memory_program(SimulatedDevice& device, const MemoryProgram& program,
                        const std::function<void()>& half_way) {
    Actor actor(device, program);
    for (int i = 0; i < program.length; ++i) {
        if (i == program.length / 2) {
            half_way();
        }
        actor.act();
    }
    actor.free_all();
}

}  // namespace swaplab::sim
