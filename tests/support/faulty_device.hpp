#pragma once

/// A device that fails where a test says.

#include "swaplab/sim/device.hpp"

#include <cstdint>
#include <functional>
#include <string>

namespace swaplab::support {

/// Passes everything on to another device. `before` is called with "launch", "copy" or "pinned"
/// before each such call goes through; a throw from it is that call's failure.
class FaultyDevice : public sim::Device {
  public:
    FaultyDevice(sim::Device& inner, std::function<void(std::string_view)> before)
        : Device(inner.rank(), inner.ledger()), inner_(inner), before_(std::move(before)) {}

    void* allocate(std::uint64_t bytes, sim::StreamRef stream, std::string_view tag,
                   sim::CallSite site) override;
    void deallocate(void* pointer, sim::StreamRef stream, sim::CallSite site) noexcept override;
    void* allocate_pinned(std::uint64_t bytes, std::string_view tag, sim::CallSite site) override;
    void deallocate_pinned(void* pointer, sim::CallSite site) noexcept override;
    sim::StreamRef create_stream(std::string_view name) override;
    void destroy_stream(sim::StreamRef stream) noexcept override;
    sim::EventRef create_event() override;
    void destroy_event(sim::EventRef event) noexcept override;
    void copy_async(void* destination, const void* source, std::uint64_t bytes,
                    sim::CopyDirection direction, sim::StreamRef stream,
                    sim::CallSite site) override;
    void fill_async(void* destination, std::byte value, std::uint64_t bytes, sim::StreamRef stream,
                    sim::CallSite site) override;
    void launch(sim::Kernel kernel, sim::StreamRef stream, sim::CallSite site) override;
    void record(sim::EventRef event, sim::StreamRef stream, sim::CallSite site) override;
    void wait(sim::StreamRef stream, sim::EventRef event, sim::CallSite site) override;
    void synchronize(sim::EventRef event, sim::CallSite site) override;
    bool query(sim::EventRef event, sim::CallSite site) override;
    void host_access(const void* pointer, std::uint64_t bytes, sim::Access access,
                     sim::CallSite site) override;
    sim::MemoryInfo memory_info() const override { return inner_.memory_info(); }

  private:
    sim::Device& inner_;
    std::function<void(std::string_view)> before_;
};

}  // namespace swaplab::support
