#include "device/late_failure.hpp"
#include "faults/flip_launcher.hpp"

#include "swaplab/sim/error.hpp"
#include "swaplab/sim/fault_plan.hpp"
#include "swaplab/sim/mutant.hpp"

#include <fmt/format.h>

#include <optional>
#include <utility>

namespace swaplab::sim {
namespace {

enum class Waits : std::uint8_t { no, yes };

struct LateError {
    LateFailure failure;
    std::uint64_t silent_calls = 0;
    bool reported = false;
};

class FaultyDevice final : public Device {
  public:
    FaultyDevice(Device& inner, FaultInjector& injector)
        : Device(inner.rank(), inner.ledger()), inner_(inner), injector_(injector) {}

    void* allocate(std::uint64_t bytes, StreamRef stream, std::string_view tag,
                   CallSite site) override {
        if (enter({"device", "allocate", tag, bytes}, "allocate", site) != nullptr) {
            run_out(MemoryKind::device, bytes, tag, site);
        }
        return inner_.allocate(bytes, stream, tag, site);
    }
    void* allocate_outside_pool(std::uint64_t bytes, StreamRef stream, std::string_view tag,
                                CallSite site) override {
        if (enter({"device", "allocate", tag, bytes}, "allocate", site) != nullptr) {
            run_out(MemoryKind::device, bytes, tag, site);
        }
        return inner_.allocate_outside_pool(bytes, stream, tag, site);
    }
    void deallocate(void* pointer, StreamRef stream, CallSite site) noexcept override {
        inner_.deallocate(pointer, stream, site);
    }
    void* allocate_pinned(std::uint64_t bytes, std::string_view tag, CallSite site) override {
        if (enter({"device", "allocate_pinned", tag, bytes}, "allocate_pinned", site) != nullptr) {
            run_out(MemoryKind::pinned, bytes, tag, site);
        }
        return inner_.allocate_pinned(bytes, tag, site);
    }
    void deallocate_pinned(void* pointer, CallSite site) noexcept override {
        inner_.deallocate_pinned(pointer, site);
    }

    StreamRef create_stream(std::string_view name, StreamKind kind) override {
        may_fail("create_stream", {});
        return inner_.create_stream(name, kind);
    }
    StreamRef default_stream() override { return inner_.default_stream(); }
    void destroy_stream(StreamRef stream, CallSite site) noexcept override {
        inner_.destroy_stream(stream, site);
    }
    EventRef create_event() override {
        may_fail("create_event", {});
        return inner_.create_event();
    }
    void destroy_event(EventRef event, CallSite site) noexcept override {
        inner_.destroy_event(event, site);
    }

    void copy_async(void* destination, const void* source, std::uint64_t bytes,
                    CopyDirection direction, StreamRef stream, CallSite site) override {
        const Fault* fault = enter({"device", "copy", {}, bytes}, "copy", site);
        copy(fault, "copy", {destination, source, bytes, direction, stream, site},
             [&] { inner_.copy_async(destination, source, bytes, direction, stream, site); });
    }
    void copy_pageable(void* destination, const void* source, std::uint64_t bytes,
                       CopyDirection direction, StreamRef stream, CallSite site) override {
        const Waits waits = direction == CopyDirection::device_to_host ? Waits::yes : Waits::no;
        const Fault* fault =
            enter({"device", "copy_pageable", {}, bytes}, "copy_pageable", site, waits);
        copy(fault, "copy_pageable", {destination, source, bytes, direction, stream, site},
             [&] { inner_.copy_pageable(destination, source, bytes, direction, stream, site); });
        if (waits == Waits::yes) {
            report_late("copy_pageable", site, waits);
        }
    }
    void fill_async(void* destination, std::byte value, std::uint64_t bytes, StreamRef stream,
                    CallSite site) override {
        work(enter({"device", "fill", {}, bytes}, "fill", site), "fill", site,
             [&] { inner_.fill_async(destination, value, bytes, stream, site); });
    }
    void launch(Kernel kernel, StreamRef stream, CallSite site) override {
        const std::string name = "launch " + kernel.name;
        work(enter({"device", "launch", kernel.name, 0}, name, site), name, site,
             [&] { inner_.launch(std::move(kernel), stream, site); });
    }

    void call_host(HostFunction function, StreamRef stream, CallSite site) override {
        const std::string name = "call_host " + function.name;
        work(enter({"device", "call_host", function.name, 0}, name, site), name, site,
             [&] { inner_.call_host(std::move(function), stream, site); });
    }

    void record(EventRef event, StreamRef stream, CallSite site) override {
        may_fail("record", site);
        inner_.record(event, stream, site);
    }
    void wait(StreamRef stream, EventRef event, CallSite site) override {
        may_fail("wait", site);
        inner_.wait(stream, event, site);
    }
    void synchronize(EventRef event, CallSite site) override {
        may_fail("synchronize", site, Waits::yes);
        inner_.synchronize(event, site);
    }
    bool query(EventRef event, CallSite site) override {
        const Fault* fault = enter({"device", "query"}, "query", site, Waits::yes);
        if (fault == nullptr) {
            return inner_.query(event, site);
        }
        if (fault->action == FaultAction::fail) {
            break_down("query", site);
        }
        return false;
    }
    void host_access(const void* pointer, std::uint64_t bytes, Access access,
                     CallSite site) override {
        inner_.host_access(pointer, bytes, access, site);
    }
    MemoryInfo memory_info() const override { return inner_.memory_info(); }

  private:
    const Fault* enter(const FaultPoint& point, const std::string& operation, CallSite site,
                       Waits waits = Waits::no) {
        report_late(operation, site, waits);
        return injector_.pass(point);
    }

    void may_fail(const std::string& operation, CallSite site, Waits waits = Waits::no) {
        if (enter({"device", operation}, operation, site, waits) != nullptr) {
            break_down(operation, site);
        }
    }

    template <class Issue>
    void work(const Fault* fault, const std::string& operation, CallSite site, const Issue& issue) {
        if (fault != nullptr && fault->action == FaultAction::fail) {
            break_down(operation, site);
        }
        if (fault != nullptr && !late_) {
            late_ = {{operation, site, "an injected fault"}, fault->silent_calls};
        }
        if (!late_) {
            issue();
        }
    }

    void report_late(const std::string& operation, CallSite site, Waits waits) {
        if (!late_) {
            return;
        }
        if (!late_->reported && waits == Waits::no && late_->silent_calls > 0) {
            --late_->silent_calls;
            return;
        }
        late_->reported = !SWAPLAB_MUTANT("faults.late_not_sticky");
        throw device_lost(rank(), late_->failure, operation, site);
    }

    struct Copy {
        void* destination;
        const void* source;
        std::uint64_t bytes;
        CopyDirection direction;
        StreamRef stream;
        CallSite site;
    };
    template <class Issue>
    void copy(const Fault* fault, const std::string& operation, const Copy& what,
              const Issue& issue) {
        if (fault != nullptr && fault->action == FaultAction::slow) {
            const std::uint64_t times = SWAPLAB_MUTANT("faults.never_slow") ? 1 : fault->times;
            for (std::uint64_t done = 0; done < times; ++done) {
                work(nullptr, operation, what.site, issue);
            }
            return;
        }
        if (fault == nullptr || fault->action != FaultAction::flip || what.bytes == 0) {
            return work(fault, operation, what.site, issue);
        }
        const std::uint64_t bit = fault->bit % (what.bytes * 8);
        if (what.direction == CopyDirection::device_to_host) {
            auto* from = const_cast<std::byte*>(static_cast<const std::byte*>(what.source));
            flip(from, bit, what.stream, what.site);
            issue();
            return flip(from, bit, what.stream, what.site);
        }
        issue();
        flip(static_cast<std::byte*>(what.destination), bit, what.stream, what.site);
    }

    void flip(std::byte* at, std::uint64_t bit, StreamRef stream, CallSite site) {
        std::byte* byte = at + bit / 8;
        const auto mask = std::byte{1} << static_cast<int>(bit % 8);
        inner_.launch({"flip",
                       {{byte, 1}},
                       {{byte, 1}},
                       [byte, mask](const DeviceAccess& access) { *access.at(byte) ^= mask; },
                       flip_launcher(byte, mask)},
                      stream, site);
    }

    [[noreturn]] void run_out(MemoryKind kind, std::uint64_t bytes, std::string_view tag,
                              CallSite site) const {
        constexpr std::size_t holders_max = 10;
        OutOfDeviceMemory::Report report;
        report.rank = rank();
        report.memory = std::string(name_of(kind));
        report.tag = std::string(tag);
        report.requested_bytes = bytes;
        report.rounded_bytes = bytes;
        report.charged_bytes = ledger().now(kind, Size::rounded);
        report.capacity_bytes = report.charged_bytes;
        report.holders = ledger().holders(kind, holders_max);
        report.by_tag = ledger().by_tag(kind);
        report.site = site;
        report.pending_bytes = ledger().pending_bytes(kind);
        throw OutOfDeviceMemory(std::move(report));
    }

    [[noreturn]] void break_down(const std::string& operation, CallSite site) const {
        throw DeviceError(fmt::format("rank {}: {} failed: an injected fault ({})", rank(),
                                      operation, format_site(site)),
                          {{"operation", operation},
                           {"rank", fmt::format("rank {}", rank())},
                           {"site", format_site(site)}});
    }

    Device& inner_;
    FaultInjector& injector_;
    std::optional<LateError> late_;
};

}  // namespace

std::unique_ptr<Device> make_faulty_device(Device& inner, FaultInjector& injector) {
    return std::make_unique<FaultyDevice>(inner, injector);
}

}  // namespace swaplab::sim
