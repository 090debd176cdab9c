#include "lab/cuda_lab.hpp"

#include "swaplab/optim/cuda_kernels.hpp"
#include "swaplab/sim/cuda/cuda_device.hpp"
#include "swaplab/sim/cuda/standin.hpp"

#include <utility>

namespace swaplab::harness {
namespace {

using sim::CallSite;
using sim::EventRef;
using sim::StreamRef;

/// A CUDA device that can be asked what simulated ones can. Streams and events are the inner
/// device's own.
class CudaLabDevice final : public sim::SimulatedDevice {
  public:
    /// `inside` is what the CUDA device runs on; nullptr: a GPU.
    CudaLabDevice(std::unique_ptr<sim::CudaDevice> inner, sim::SimulatedDevice* inside)
        : SimulatedDevice(inner->rank(), inner->ledger()),
          inner_(std::move(inner)),
          inside_(inside) {}

    void* allocate(std::uint64_t bytes, StreamRef stream, std::string_view tag,
                   CallSite site) override {
        return inner_->allocate(bytes, stream, tag, site);
    }
    void deallocate(void* pointer, StreamRef stream, CallSite site) noexcept override {
        inner_->deallocate(pointer, stream, site);
    }
    void* allocate_pinned(std::uint64_t bytes, std::string_view tag, CallSite site) override {
        return inner_->allocate_pinned(bytes, tag, site);
    }
    void deallocate_pinned(void* pointer, CallSite site) noexcept override {
        inner_->deallocate_pinned(pointer, site);
    }
    StreamRef create_stream(std::string_view name, sim::StreamKind kind) override {
        return inner_->create_stream(name, kind);
    }
    void destroy_stream(StreamRef stream, CallSite site) noexcept override {
        inner_->destroy_stream(stream, site);
    }
    StreamRef default_stream() override { return inner_->default_stream(); }
    EventRef create_event() override { return inner_->create_event(); }
    void destroy_event(EventRef event, CallSite site) noexcept override {
        inner_->destroy_event(event, site);
    }
    void copy_async(void* destination, const void* source, std::uint64_t bytes,
                    sim::CopyDirection direction, StreamRef stream, CallSite site) override {
        inner_->copy_async(destination, source, bytes, direction, stream, site);
    }
    void copy_pageable(void* destination, const void* source, std::uint64_t bytes,
                       sim::CopyDirection direction, StreamRef stream, CallSite site) override {
        inner_->copy_pageable(destination, source, bytes, direction, stream, site);
    }
    void fill_async(void* destination, std::byte value, std::uint64_t bytes, StreamRef stream,
                    CallSite site) override {
        inner_->fill_async(destination, value, bytes, stream, site);
    }
    void launch(sim::Kernel kernel, StreamRef stream, CallSite site) override {
        inner_->launch(std::move(kernel), stream, site);
    }
    void call_host(sim::HostFunction function, StreamRef stream, CallSite site) override {
        inner_->call_host(std::move(function), stream, site);
    }
    void record(EventRef event, StreamRef stream, CallSite site) override {
        inner_->record(event, stream, site);
    }
    void wait(StreamRef stream, EventRef event, CallSite site) override {
        inner_->wait(stream, event, site);
    }
    void synchronize(EventRef event, CallSite site) override { inner_->synchronize(event, site); }
    bool query(EventRef event, CallSite site) override { return inner_->query(event, site); }
    void host_access(const void* pointer, std::uint64_t bytes, sim::Access access,
                     CallSite site) override {
        inner_->host_access(pointer, bytes, access, site);
    }
    [[nodiscard]] sim::MemoryInfo memory_info() const override { return inner_->memory_info(); }

    [[nodiscard]] const std::vector<sim::Finding>& findings() const noexcept override {
        return inside_ != nullptr ? inside_->findings() : no_findings_;
    }
    [[nodiscard]] const std::vector<sim::TraceEvent>& trace() const noexcept override {
        return inside_ != nullptr ? inside_->trace() : no_trace_;
    }
    [[nodiscard]] sim::AllocatorStats allocator_stats() const noexcept override {
        return inside_ != nullptr ? inside_->allocator_stats() : sim::AllocatorStats{};
    }
    void restart_reserved_peaks() noexcept override {
        if (inside_ != nullptr) {
            inside_->restart_reserved_peaks();
        }
    }
    void* allocate_outside_pool(std::uint64_t bytes, StreamRef stream, std::string_view tag,
                                CallSite site) override {
        return inner_->allocate_outside_pool(bytes, stream, tag, site);
    }
    [[nodiscard]] std::uint64_t execution_digest() const noexcept override {
        return inside_ != nullptr ? inside_->execution_digest() : 0;
    }
    [[nodiscard]] std::vector<bool> chances() const override {
        return inside_ != nullptr ? inside_->chances() : std::vector<bool>{};
    }
    [[nodiscard]] sim::ExecutionRecord execution_record() const override {
        return inside_ != nullptr ? inside_->execution_record() : sim::ExecutionRecord{};
    }
    [[nodiscard]] sim::IssuePoint issue_point() const noexcept override {
        return inside_ != nullptr ? inside_->issue_point() : sim::IssuePoint{};
    }
    [[nodiscard]] sim::DevicePeak worst_peak(sim::Size size, sim::IssuePoint begin) const override {
        return inside_ != nullptr ? inside_->worst_peak(size, begin) : sim::DevicePeak{};
    }
    [[nodiscard]] sim::TimedGraph timed_graph() const override {
        return inside_ != nullptr ? inside_->timed_graph() : sim::TimedGraph{};
    }
    void finish() override {
        if (inside_ != nullptr) {
            inside_->finish();
        }
    }
    [[nodiscard]] const std::byte* inspect(const void* device_pointer) const override {
        if (inside_ != nullptr) {
            return inside_->inspect(device_pointer);
        }
        copy_ = inner_->read_block(device_pointer);
        return copy_.data();
    }

  private:
    std::unique_ptr<sim::CudaDevice> inner_;
    sim::SimulatedDevice* inside_;
    std::vector<sim::Finding> no_findings_;
    std::vector<sim::TraceEvent> no_trace_;
    mutable std::vector<std::byte> copy_;  ///< of what was inspected last
};

class CudaLab final : public scenario::Backend {
  public:
    explicit CudaLab(std::string gpu) : gpu_(std::move(gpu)) { optim::register_cuda_kernels(); }

    [[nodiscard]] std::string name() const override { return "CUDA: " + gpu_; }
    [[nodiscard]] bool sees_inside() const override { return sim::standin() != nullptr; }

    void begin(int ranks, const sim::SimulatedDeviceOptions& options) const override {
        if (sim::Standin* found = sim::standin()) {
            sim::StandinOptions standin;
            standin.device = options;
            standin.device_count = ranks;
            found->configure(standin);
        }
    }

    // All ranks share the first GPU; of the stand-in each has its own.
    [[nodiscard]] std::unique_ptr<sim::SimulatedDevice> make(
        const sim::SimulatedDeviceOptions& options) const override {
        sim::Standin* const found = sim::standin();
        sim::CudaDeviceOptions cuda;
        cuda.rank = options.rank;
        cuda.ordinal = found != nullptr ? options.rank : 0;
        cuda.capacity_bytes = options.capacity_bytes;
        std::unique_ptr<sim::CudaDevice> inner = sim::make_cuda_device(cuda);
        return std::make_unique<CudaLabDevice>(
            std::move(inner), found != nullptr ? &found->device(options.rank) : nullptr);
    }

    [[nodiscard]] std::function<void(void*)> write_launcher(
        void* target, std::vector<std::byte> bytes) const override {
        return sim::cuda_write_launcher(target, std::move(bytes));
    }

  private:
    std::string gpu_;
};

}  // namespace

std::unique_ptr<scenario::Backend> make_cuda_backend() {
    const sim::CudaAvailability found = sim::cuda_available();
    if (!found.usable) {
        throw sim::DeviceError("CUDA cannot be used: " + found.text, {{"reason", found.text}});
    }
    return std::make_unique<CudaLab>(found.text);
}

}  // namespace swaplab::harness
