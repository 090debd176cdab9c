#include "swaplab/sim/device_trace.hpp"
#include "swaplab/sim/error.hpp"
#include "swaplab/sim/mutant.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <utility>

namespace swaplab::sim {
namespace {

using Kept = std::vector<std::size_t>;  ///< places of calls, in order

/// New numbers for what is still made, by old number.
class Numbers {
  public:
    void make(std::uint32_t old_number) {
        numbers_.emplace(old_number, static_cast<std::uint32_t>(numbers_.size()));
    }
    /// False when it is not made any more.
    [[nodiscard]] bool renumber(std::uint32_t& number) const {
        if (number == DeviceCall::none) {
            return true;
        }
        const auto found = numbers_.find(number);
        number = found != numbers_.end() ? found->second : number;
        return found != numbers_.end();
    }

  private:
    std::map<std::uint32_t, std::uint32_t> numbers_;
};

/// The kept calls of a program, without those that use what is not made any more.
class Reduced {
  public:
    Reduced(const DeviceProgram& whole, const Kept& kept) : whole_(whole) {
        for (const std::size_t place : kept) {
            add(whole.calls[place]);
        }
    }
    [[nodiscard]] DeviceProgram take() && { return std::move(program_); }

  private:
    void add(DeviceCall call) {
        const bool made = !call.refused;
        const bool memory =
            call.kind == CallKind::allocate || call.kind == CallKind::allocate_pinned;
        if (made && memory) {
            memory_.make(call.writes.front().memory);
        } else if (made && call.kind == CallKind::create_event) {
            events_.make(call.event);
        } else if (made && (call.kind == CallKind::create_stream ||
                            call.kind == CallKind::default_stream)) {
            streams_.make(call.stream);
        }
        bool usable = streams_.renumber(call.stream) && events_.renumber(call.event);
        for (auto* ranges : {&call.reads, &call.writes}) {
            for (DeviceCall::Range& range : *ranges) {
                usable = memory_.renumber(range.memory) && usable;
            }
        }
        if (usable) {
            call.name = name(call.name);
            call.file = name(call.file);
            program_.calls.push_back(std::move(call));
        }
    }
    std::uint32_t name(std::uint32_t old_number) {
        const auto [found, fresh] = names_.emplace(old_number, program_.names.size());
        if (fresh) {
            program_.names.push_back(whole_.names[old_number]);
        }
        return found->second;
    }

    const DeviceProgram& whole_;
    DeviceProgram program_;
    std::map<std::uint32_t, std::uint32_t> names_;
    Numbers streams_, events_, memory_;
};

bool has(const SimulatedDevice& device, const Finding& wanted) {
    return std::any_of(
        device.findings().begin(), device.findings().end(), [&](const Finding& finding) {
            return finding.kind == wanted.kind &&
                   (finding.text == wanted.text || SWAPLAB_MUTANT("trace.any_finding"));
        });
}

/// From the plainest on.
std::vector<std::pair<Schedule, std::uint64_t>> schedules() {
    std::vector<std::pair<Schedule, std::uint64_t>> all{{Schedule::fifo, 1}, {Schedule::latest, 1}};
    for (std::uint64_t seed = 1; seed <= 16; ++seed) {
        all.emplace_back(Schedule::random, seed);
    }
    return all;
}

class Shrinker {
  public:
    Shrinker(const DeviceTrace& trace, const Finding& finding) : trace_(trace), finding_(finding) {}

    DeviceTrace shrink() {
        Kept kept(trace_.program.calls.size());
        std::iota(kept.begin(), kept.end(), std::size_t{0});
        for (const auto& [schedule, seed] : schedules()) {
            options_ = trace_.options;
            options_.schedule = schedule;
            options_.seed = seed;
            options_.record.clear();
            options_.chances.clear();
            if (shows(kept)) {
                minimise(kept);
                return std::move(*smallest_);
            }
        }
        throw ArgumentError(
            fmt::format("nothing to shrink: no schedule of this trace has the finding \"{}\"",
                        finding_.text),
            {{"operation", "shrink"}, {"expected", finding_.text}});
    }

  private:
    /// Whether the finding is there with `kept` alone; keeps the trace if it is.
    bool shows(const Kept& kept) {
        DeviceProgram program = Reduced(trace_.program, kept).take();
        const auto device = make_simulated_device(options_);
        try {
            run_program(program, *device);
        } catch (const Error&) {
            return false;  // what was left out made a call impossible
        }
        device->finish();
        if (!has(*device, finding_)) {
            return false;
        }
        smallest_ = make_trace(options_, program, *device);
        return true;
    }

    /// Leaves out ever smaller parts until no single call can go.
    void minimise(Kept& kept) {
        std::size_t part = kept.size() / 2;
        while (part > 0) {
            const bool fewer = leave_out_parts(kept, part);
            part = fewer ? std::min(part, kept.size() / 2) : part == 1 ? 0 : part / 2;
        }
    }

    bool leave_out_parts(Kept& kept, std::size_t part) {
        bool fewer = false;
        for (std::size_t end = kept.size(); end > 0 && !SWAPLAB_MUTANT("trace.no_shrink");) {
            const std::size_t begin = end - std::min(part, end);
            Kept rest(kept.begin(), kept.begin() + static_cast<std::ptrdiff_t>(begin));
            rest.insert(rest.end(), kept.begin() + static_cast<std::ptrdiff_t>(end), kept.end());
            if (shows(rest)) {
                kept = std::move(rest);
                fewer = true;
            }
            end = begin;
        }
        return fewer;
    }

    const DeviceTrace& trace_;
    const Finding& finding_;
    SimulatedDeviceOptions options_;
    std::optional<DeviceTrace> smallest_;
};

}  // namespace

DeviceTrace shrink(const DeviceTrace& trace, const Finding& finding) {
    return Shrinker(trace, finding).shrink();
}

}  // namespace swaplab::sim
