#include "swaplab/sim/device_program.hpp"
#include "swaplab/sim/error.hpp"
#include "swaplab/sim/mutant.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <stdexcept>

namespace swaplab::sim {
namespace {

[[noreturn]] void fail_as_recorded() {
    throw std::runtime_error("it failed when it was recorded");
}

class Player {
  public:
    Player(const DeviceProgram& program, Device& device) : program_(program), device_(device) {}

    void play() {
        for (const DeviceCall& call : program_.calls) {
            try {
                make(call);
            } catch (const Error&) {
                if (!call.refused) {
                    throw;
                }
            }
            ++done_;
        }
    }

  private:
    void make(const DeviceCall& call) {
        switch (call.kind) {
            case CallKind::allocate:
            case CallKind::deallocate:
            case CallKind::allocate_pinned:
            case CallKind::deallocate_pinned:
                return make_memory(call);
            case CallKind::create_stream:
            case CallKind::default_stream:
            case CallKind::destroy_stream:
            case CallKind::create_event:
            case CallKind::destroy_event:
                return make_handle(call);
            case CallKind::copy:
            case CallKind::copy_pageable:
            case CallKind::fill:
            case CallKind::launch:
            case CallKind::call_host:
                return make_work(call);
            case CallKind::record:
                return device_.record(event(call), stream(call), site(call));
            case CallKind::wait:
                return device_.wait(stream(call), event(call), site(call));
            case CallKind::synchronize:
                return device_.synchronize(event(call), site(call));
            case CallKind::query:
                return static_cast<void>(device_.query(event(call), site(call)));
            case CallKind::host_access:
                return access(call);
        }
    }

    void make_memory(const DeviceCall& call) {
        const DeviceCall::Range& range = only(call.writes);
        if (call.kind == CallKind::deallocate || call.kind == CallKind::deallocate_pinned) {
            return give_back(call, range);
        }
        void* memory =
            call.kind == CallKind::allocate_pinned
                ? device_.allocate_pinned(range.bytes, name(call), site(call))
            : call.variant == 1
                ? device_.allocate_outside_pool(range.bytes, stream(call), name(call), site(call))
                : device_.allocate(range.bytes, stream(call), name(call), site(call));
        if (!call.refused) {
            memory_.push_back({reinterpret_cast<std::uintptr_t>(memory), range.bytes, true});
        }
    }

    void give_back(const DeviceCall& call, const DeviceCall::Range& range) {
        if (call.kind == CallKind::deallocate) {
            device_.deallocate(pointer(range), stream(call), site(call));
        } else {
            device_.deallocate_pinned(pointer(range), site(call));
        }
        if (range.memory != DeviceCall::none && range.offset_bytes == 0) {
            memory_[range.memory].live = false;
        }
    }

    void make_handle(const DeviceCall& call) {
        if (call.kind == CallKind::create_stream) {
            streams_.push_back(
                device_.create_stream(name(call), static_cast<StreamKind>(call.variant)));
        } else if (call.kind == CallKind::default_stream) {
            streams_.push_back(device_.default_stream());
        } else if (call.kind == CallKind::destroy_stream) {
            device_.destroy_stream(stream(call), site(call));
        } else if (call.kind == CallKind::create_event) {
            events_.push_back(device_.create_event());
        } else {
            device_.destroy_event(event(call), site(call));
        }
    }

    void make_work(const DeviceCall& call) {
        if (call.kind == CallKind::fill) {
            const DeviceCall::Range& range = only(call.writes);
            return device_.fill_async(pointer(range), std::byte{call.variant}, range.bytes,
                                      stream(call), site(call));
        }
        if (call.kind == CallKind::launch) {
            Kernel kernel{name(call), ranges(call.reads), ranges(call.writes), {}, {}};
            if (call.failed) {
                kernel.host_body = [](const DeviceAccess&) { fail_as_recorded(); };
            }
            return device_.launch(std::move(kernel), stream(call), site(call));
        }
        if (call.kind == CallKind::call_host) {
            HostFunction function{name(call), ranges(call.reads), ranges(call.writes), [] {}};
            if (call.failed) {
                function.body = fail_as_recorded;
            }
            return device_.call_host(std::move(function), stream(call), site(call));
        }
        const DeviceCall::Range& to = only(call.writes);
        const DeviceCall::Range& from = only(call.reads);
        const auto direction = static_cast<CopyDirection>(call.variant);
        if (call.kind == CallKind::copy) {
            return device_.copy_async(pointer(to), pointer(from), to.bytes, direction, stream(call),
                                      site(call));
        }
        const bool to_host = direction == CopyDirection::device_to_host;
        device_.copy_pageable(to_host ? touchable(to, to.bytes) : pointer(to),
                              to_host ? pointer(from) : touchable(from, to.bytes), to.bytes,
                              direction, stream(call), site(call));
    }

    void access(const DeviceCall& call) {
        const bool reads = !call.reads.empty();
        const DeviceCall::Range& range = only(reads ? call.reads : call.writes);
        device_.host_access(pointer(range), range.bytes, reads ? Access::read : Access::write,
                            site(call));
    }

    [[nodiscard]] std::vector<ByteRange> ranges(const std::vector<DeviceCall::Range>& from) {
        std::vector<ByteRange> out;
        for (const DeviceCall::Range& range : from) {
            out.push_back({pointer(range), range.bytes});
        }
        return out;
    }

    /// Memory of nobody is stood in for by some of the host's.
    [[nodiscard]] std::byte* pointer(const DeviceCall::Range& range) {
        return range.memory == DeviceCall::none
                   ? foreign_.data()
                   : reinterpret_cast<std::byte*>(made(memory_, range.memory, "memory").address +
                                                  range.offset_bytes);
    }
    /// The same where the host may read or write `bytes` of it: also for what was the device's
    /// memory, and is ordinary memory since. More than a device has is refused by it untouched.
    [[nodiscard]] std::byte* touchable(const DeviceCall::Range& range, std::uint64_t bytes) {
        if (range.memory != DeviceCall::none) {
            const Memory& memory = made(memory_, range.memory, "memory");
            const bool is_there = memory.live && range.offset_bytes < memory.bytes;
            if (is_there || SWAPLAB_MUTANT("trace.freed_is_touched")) {
                return pointer(range);
            }
        }
        const std::uint64_t touched = std::min(bytes, device_.memory_info().capacity_bytes);
        if (foreign_.size() < touched) {
            foreign_.resize(touched);
        }
        return foreign_.data();
    }
    [[nodiscard]] StreamRef stream(const DeviceCall& call) const {
        return made(streams_, call.stream, "stream");
    }
    [[nodiscard]] EventRef event(const DeviceCall& call) const {
        return made(events_, call.event, "event");
    }
    [[nodiscard]] const std::string& name(const DeviceCall& call) const {
        return made(program_.names, call.name, "name");
    }
    [[nodiscard]] CallSite site(const DeviceCall& call) const {
        return {made(program_.names, call.file, "file").c_str(), static_cast<int>(call.line)};
    }
    template <class T>
    [[nodiscard]] const T& made(const std::vector<T>& all, std::uint32_t number,
                                std::string_view what) const {
        if (number >= all.size()) {
            refuse(fmt::format("{} {} of {}", what, number, all.size()));
        }
        return all[number];
    }
    [[nodiscard]] const DeviceCall::Range& only(
        const std::vector<DeviceCall::Range>& ranges) const {
        if (ranges.size() != 1) {
            refuse(fmt::format("{} ranges where 1 belongs", ranges.size()));
        }
        return ranges.front();
    }
    [[noreturn]] void refuse(const std::string& what) const {
        throw ArgumentError(
            fmt::format("program refused: call {} names {}", done_, what),
            {{"operation", "run program"}, {"call", std::to_string(done_)}, {"found", what}});
    }

    const DeviceProgram& program_;
    Device& device_;
    std::size_t done_ = 0;
    std::vector<StreamRef> streams_;
    std::vector<EventRef> events_;
    struct Memory {
        std::uintptr_t address = 0;
        std::uint64_t bytes = 0;
        bool live = false;
    };
    std::vector<Memory> memory_;
    std::vector<std::byte> foreign_ = std::vector<std::byte>(1);
};

}  // namespace

void run_program(const DeviceProgram& program, Device& device) {
    Player(program, device).play();
}

std::uint64_t most_bytes_held(const DeviceProgram& program) {
    std::vector<std::uint64_t> sizes;  // 0: given back
    std::uint64_t now = 0;
    std::uint64_t most = 0;
    for (const DeviceCall& call : program.calls) {
        const bool takes =
            call.kind == CallKind::allocate || call.kind == CallKind::allocate_pinned;
        const bool gives =
            call.kind == CallKind::deallocate || call.kind == CallKind::deallocate_pinned;
        if (call.writes.size() != 1 || call.refused || !(takes || gives)) {
            continue;
        }
        const DeviceCall::Range& range = call.writes.front();
        if (takes) {
            sizes.push_back(range.bytes);
            now += std::min(range.bytes, std::numeric_limits<std::uint64_t>::max() - now);
            most = std::max(most, now);
        } else if (range.memory < sizes.size() && range.offset_bytes == 0) {
            now -= std::min(now, sizes[range.memory]);
            sizes[range.memory] = 0;
        }
    }
    return most;
}

}  // namespace swaplab::sim
