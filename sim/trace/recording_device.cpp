#include "simulated/names.hpp"

#include "swaplab/sim/device_program.hpp"
#include "swaplab/sim/mutant.hpp"

#include <functional>
#include <iterator>
#include <map>
#include <string_view>
#include <utility>

namespace swaplab::sim {
namespace {

/// By number, in the order they were made.
template <class Ref>
class Made {
  public:
    std::uint64_t add(Ref ref) {
        refs_.push_back(ref);
        return refs_.size() - 1;
    }
    [[nodiscard]] Ref at(std::uint64_t number) const { return refs_.at(number); }
    [[nodiscard]] std::uint32_t next() const { return static_cast<std::uint32_t>(refs_.size()); }

  private:
    std::vector<Ref> refs_;
};

/// Which memory an address belongs to, or belonged to until others got it.
class Addresses {
  public:
    void add(const void* pointer, std::uint64_t bytes) {
        const auto* begin = static_cast<const std::byte*>(pointer);
        auto first = blocks_.lower_bound(begin);
        if (first != blocks_.begin() && end_of(*std::prev(first)) > begin) {
            --first;
        }
        while (first != blocks_.end() && std::less<>()(first->first, begin + bytes)) {
            first = blocks_.erase(first);
        }
        blocks_[begin] = {next_++, bytes};
    }
    [[nodiscard]] std::uint32_t next() const noexcept { return next_; }
    [[nodiscard]] DeviceCall::Range range(const void* pointer, std::uint64_t bytes) const {
        const auto* at = static_cast<const std::byte*>(pointer);
        const auto after = blocks_.upper_bound(at);
        if (after == blocks_.begin() || end_of(*std::prev(after)) <= at) {
            return {DeviceCall::none, 0, bytes};
        }
        const auto& [begin, block] = *std::prev(after);
        return {block.number, static_cast<std::uint64_t>(at - begin), bytes};
    }

  private:
    struct Block {
        std::uint32_t number = 0;
        std::uint64_t bytes = 0;
    };
    using Blocks = std::map<const std::byte*, Block, std::less<>>;
    static const std::byte* end_of(const Blocks::value_type& entry) {
        return entry.first + entry.second.bytes;
    }

    Blocks blocks_;
    std::uint32_t next_ = 0;
};

class RecordingDevice final : public Device {
  public:
    RecordingDevice(Device& inner, DeviceProgram& program)
        : Device(inner.rank(), inner.ledger()), inner_(inner), program_(program) {}

    void* allocate(std::uint64_t bytes, StreamRef stream, std::string_view tag,
                   CallSite site) override {
        return allocate_by(&Device::allocate, false, bytes, stream, tag, site);
    }
    void* allocate_outside_pool(std::uint64_t bytes, StreamRef stream, std::string_view tag,
                                CallSite site) override {
        return allocate_by(&Device::allocate_outside_pool, true, bytes, stream, tag, site);
    }
    void deallocate(void* pointer, StreamRef stream, CallSite site) noexcept override {
        DeviceCall call = at(CallKind::deallocate, site);
        call.stream = number(stream);
        call.writes = {addresses_.range(pointer, 0)};
        forward(std::move(call), [&] { inner_.deallocate(pointer, inside(stream), site); });
    }
    void* allocate_pinned(std::uint64_t bytes, std::string_view tag, CallSite site) override {
        DeviceCall call = at(CallKind::allocate_pinned, site, tag);
        call.writes = {{addresses_.next(), 0, bytes}};
        void* memory = nullptr;
        forward(std::move(call), [&] { memory = inner_.allocate_pinned(bytes, tag, site); });
        addresses_.add(memory, bytes);
        return memory;
    }
    void deallocate_pinned(void* pointer, CallSite site) noexcept override {
        DeviceCall call = at(CallKind::deallocate_pinned, site);
        call.writes = {addresses_.range(pointer, 0)};
        forward(std::move(call), [&] { inner_.deallocate_pinned(pointer, site); });
    }

    StreamRef create_stream(std::string_view name, StreamKind kind) override {
        DeviceCall call = at(CallKind::create_stream, {}, name);
        call.stream = streams_.next();
        call.variant = static_cast<std::uint8_t>(kind);
        StreamRef made(*this, streams_.next());
        forward(std::move(call), [&] { streams_.add(inner_.create_stream(name, kind)); });
        return made;
    }
    StreamRef default_stream() override {
        if (default_stream_ == DeviceCall::none) {
            DeviceCall call = at(CallKind::default_stream, {});
            call.stream = streams_.next();
            forward(std::move(call), [&] { streams_.add(inner_.default_stream()); });
            default_stream_ = streams_.next() - 1;
        }
        return {*this, default_stream_};
    }
    void destroy_stream(StreamRef stream, CallSite site) noexcept override {
        DeviceCall call = at(CallKind::destroy_stream, site);
        call.stream = number(stream);
        forward(std::move(call), [&] { inner_.destroy_stream(inside(stream), site); });
    }
    EventRef create_event() override {
        DeviceCall call = at(CallKind::create_event, {});
        call.event = events_.next();
        EventRef made(*this, events_.next());
        forward(std::move(call), [&] { events_.add(inner_.create_event()); });
        return made;
    }
    void destroy_event(EventRef event, CallSite site) noexcept override {
        DeviceCall call = at(CallKind::destroy_event, site);
        call.event = number(event);
        forward(std::move(call), [&] { inner_.destroy_event(inside(event), site); });
    }

    void copy_async(void* destination, const void* source, std::uint64_t bytes,
                    CopyDirection direction, StreamRef stream, CallSite site) override {
        forward(copy(CallKind::copy, destination, source, bytes, direction, stream, site), [&] {
            inner_.copy_async(destination, source, bytes, direction, inside(stream), site);
        });
    }
    void copy_pageable(void* destination, const void* source, std::uint64_t bytes,
                       CopyDirection direction, StreamRef stream, CallSite site) override {
        forward(copy(CallKind::copy_pageable, destination, source, bytes, direction, stream, site),
                [&] {
                    inner_.copy_pageable(destination, source, bytes, direction, inside(stream),
                                         site);
                });
    }
    void fill_async(void* destination, std::byte value, std::uint64_t bytes, StreamRef stream,
                    CallSite site) override {
        DeviceCall call = at(CallKind::fill, site);
        call.stream = number(stream);
        call.variant = std::to_integer<std::uint8_t>(value);
        call.writes = {addresses_.range(destination, bytes)};
        forward(std::move(call),
                [&] { inner_.fill_async(destination, value, bytes, inside(stream), site); });
    }
    void launch(Kernel kernel, StreamRef stream, CallSite site) override {
        DeviceCall call =
            touching(CallKind::launch, kernel.name, kernel.reads, kernel.writes, stream, site);
        if (kernel.host_body) {
            kernel.host_body = [watch = watch_failure(), body = std::move(kernel.host_body)](
                                   const DeviceAccess& access) { watch([&] { body(access); }); };
        }
        forward(std::move(call), [&] { inner_.launch(std::move(kernel), inside(stream), site); });
    }
    void call_host(HostFunction function, StreamRef stream, CallSite site) override {
        DeviceCall call = touching(CallKind::call_host, function.name, function.reads,
                                   function.writes, stream, site);
        if (function.body) {
            function.body = [watch = watch_failure(), body = std::move(function.body)] {
                watch(body);
            };
        }
        forward(std::move(call),
                [&] { inner_.call_host(std::move(function), inside(stream), site); });
    }

    void record(EventRef event, StreamRef stream, CallSite site) override {
        forward(ordering(CallKind::record, event, site, number(stream)),
                [&] { inner_.record(inside(event), inside(stream), site); });
    }
    void wait(StreamRef stream, EventRef event, CallSite site) override {
        if (SWAPLAB_MUTANT("trace.wait_unrecorded")) {
            return inner_.wait(inside(stream), inside(event), site);
        }
        forward(ordering(CallKind::wait, event, site, number(stream)),
                [&] { inner_.wait(inside(stream), inside(event), site); });
    }
    void synchronize(EventRef event, CallSite site) override {
        forward(ordering(CallKind::synchronize, event, site),
                [&] { inner_.synchronize(inside(event), site); });
    }
    bool query(EventRef event, CallSite site) override {
        bool has_run = false;
        forward(ordering(CallKind::query, event, site),
                [&] { has_run = inner_.query(inside(event), site); });
        return has_run;
    }
    void host_access(const void* pointer, std::uint64_t bytes, Access access,
                     CallSite site) override {
        DeviceCall call = at(CallKind::host_access, site);
        auto& touched = access == Access::read ? call.reads : call.writes;
        touched.push_back(addresses_.range(pointer, bytes));
        forward(std::move(call), [&] { inner_.host_access(pointer, bytes, access, site); });
    }
    [[nodiscard]] MemoryInfo memory_info() const override { return inner_.memory_info(); }

  private:
    using Allocate = void* (Device::*)(std::uint64_t, StreamRef, std::string_view, CallSite);
    void* allocate_by(Allocate inner_allocate, bool outside_pool, std::uint64_t bytes,
                      StreamRef stream, std::string_view tag, CallSite site) {
        DeviceCall call = at(CallKind::allocate, site, tag);
        call.variant = outside_pool && !SWAPLAB_MUTANT("trace.outside_in_pool") ? 1 : 0;
        call.stream = number(stream);
        call.writes = {{addresses_.next(), 0, bytes}};
        void* memory = nullptr;
        forward(std::move(call),
                [&] { memory = (inner_.*inner_allocate)(bytes, inside(stream), tag, site); });
        addresses_.add(memory, bytes);
        return memory;
    }

    [[nodiscard]] std::uint32_t intern(std::string_view text) {
        const NameId id = names_.intern(text);
        if (id >= program_.names.size()) {
            program_.names.resize(id + std::size_t{1});
            program_.names[id] = text;
        }
        return id;
    }
    [[nodiscard]] DeviceCall at(CallKind kind, CallSite site, std::string_view name = {}) {
        const std::string_view path = site.file;
        DeviceCall call;
        call.kind = kind;
        call.name = intern(name);
        call.file = intern(path.substr(path.find_last_of('/') + 1));
        call.line = static_cast<std::uint32_t>(site.line);
        return call;
    }
    [[nodiscard]] DeviceCall copy(CallKind kind, const void* destination, const void* source,
                                  std::uint64_t bytes, CopyDirection direction, StreamRef stream,
                                  CallSite site) {
        DeviceCall call = at(kind, site);
        call.stream = number(stream);
        call.variant = static_cast<std::uint8_t>(direction);
        call.reads = {addresses_.range(source, bytes)};
        call.writes = {addresses_.range(destination, bytes)};
        return call;
    }
    [[nodiscard]] DeviceCall touching(CallKind kind, std::string_view name,
                                      const std::vector<ByteRange>& reads,
                                      const std::vector<ByteRange>& writes, StreamRef stream,
                                      CallSite site) {
        DeviceCall call = at(kind, site, name);
        call.stream = number(stream);
        for (const ByteRange& read : reads) {
            call.reads.push_back(addresses_.range(read.pointer, read.bytes));
        }
        for (const ByteRange& write : writes) {
            call.writes.push_back(addresses_.range(write.pointer, write.bytes));
        }
        return call;
    }
    [[nodiscard]] DeviceCall ordering(CallKind kind, EventRef event, CallSite site,
                                      std::uint32_t stream = DeviceCall::none) {
        DeviceCall call = at(kind, site);
        call.event = number(event);
        call.stream = stream;
        return call;
    }
    /// For the body of the call that is recorded next: notes that it threw.
    [[nodiscard]] std::function<void(const std::function<void()>&)> watch_failure() {
        return [this, place = program_.calls.size()](const std::function<void()>& body) {
            try {
                body();
            } catch (...) {
                program_.calls[place].failed = true;
                throw;
            }
        };
    }
    template <class Forward>
    void forward(DeviceCall call, Forward to_inner) {
        const std::size_t place = program_.calls.size();
        program_.calls.push_back(std::move(call));
        try {
            to_inner();
        } catch (...) {
            program_.calls[place].refused = true;
            throw;
        }
    }

    /// A foreign stream or event goes on as it is, to be refused.
    [[nodiscard]] bool is_own(StreamRef stream) const { return &stream.device() == this; }
    [[nodiscard]] bool is_own(EventRef event) const { return &event.device() == this; }
    template <class Ref>
    [[nodiscard]] std::uint32_t number(Ref ref) const {
        return is_own(ref) ? static_cast<std::uint32_t>(ref.handle()) : DeviceCall::none;
    }
    [[nodiscard]] StreamRef inside(StreamRef stream) const {
        return is_own(stream) ? streams_.at(stream.handle()) : stream;
    }
    [[nodiscard]] EventRef inside(EventRef event) const {
        return is_own(event) ? events_.at(event.handle()) : event;
    }

    Device& inner_;
    DeviceProgram& program_;
    Names names_;
    Addresses addresses_;
    Made<StreamRef> streams_;
    Made<EventRef> events_;
    std::uint32_t default_stream_ = DeviceCall::none;
};

}  // namespace

std::unique_ptr<Device> make_recording_device(Device& inner, DeviceProgram& program) {
    return std::make_unique<RecordingDevice>(inner, program);
}

}  // namespace swaplab::sim
