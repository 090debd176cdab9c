#pragma once

/// The Device seam over the CUDA runtime. Arguments are checked against an own table of allocations
/// before the driver sees them; what the ledger says does not depend on the driver.

#include "cuda/cuda_memory.hpp"
#include "cuda/pending_work.hpp"
#include "device/caller.hpp"
#include "device/late_failure.hpp"
#include "simulated/clock.hpp"
#include "simulated/handle_table.hpp"

#include "swaplab/sim/cuda/cuda_device.hpp"

#include <atomic>
#include <cstdint>
#include <cuda_runtime_api.h>
#include <list>
#include <optional>
#include <string>
#include <string_view>

namespace swaplab::sim {

class CudaBackend final : public CudaDevice {
  public:
    explicit CudaBackend(const CudaDeviceOptions& options);
    ~CudaBackend() override;

    void* allocate(std::uint64_t bytes, StreamRef stream, std::string_view tag,
                   CallSite site) override;
    void* allocate_outside_pool(std::uint64_t bytes, StreamRef stream, std::string_view tag,
                                CallSite site) override;
    void deallocate(void* pointer, StreamRef stream, CallSite site) noexcept override;
    void* allocate_pinned(std::uint64_t bytes, std::string_view tag, CallSite site) override;
    void deallocate_pinned(void* pointer, CallSite site) noexcept override;

    StreamRef create_stream(std::string_view name, StreamKind kind) override;
    void destroy_stream(StreamRef stream, CallSite site) noexcept override;
    StreamRef default_stream() override { return {*this, default_stream_}; }
    EventRef create_event() override;
    void destroy_event(EventRef event, CallSite site) noexcept override;

    void copy_async(void* destination, const void* source, std::uint64_t bytes,
                    CopyDirection direction, StreamRef stream, CallSite site) override;
    void copy_pageable(void* destination, const void* source, std::uint64_t bytes,
                       CopyDirection direction, StreamRef stream, CallSite site) override;
    void fill_async(void* destination, std::byte value, std::uint64_t bytes, StreamRef stream,
                    CallSite site) override;
    void launch(Kernel kernel, StreamRef stream, CallSite site) override;
    void call_host(HostFunction function, StreamRef stream, CallSite site) override;

    void record(EventRef event, StreamRef stream, CallSite site) override;
    void wait(StreamRef stream, EventRef event, CallSite site) override;
    void synchronize(EventRef event, CallSite site) override;
    bool query(EventRef event, CallSite site) override;
    void host_access(const void* pointer, std::uint64_t bytes, Access access,
                     CallSite site) override;
    [[nodiscard]] MemoryInfo memory_info() const override;

    [[nodiscard]] MemoryInfo gpu_memory() const override;
    [[nodiscard]] std::uint64_t pool_peak_bytes() const override;
    void forget_pool_peak() override;
    [[nodiscard]] std::vector<std::byte> read_block(const void* pointer) override;

  private:
    struct StreamState {
        cudaStream_t native = nullptr;
        LaneId lane = 0;
        std::uint64_t issued = 0;
        VectorClock clock;  ///< what its next operation is ordered after
    };
    struct EventState {
        cudaEvent_t native = nullptr;
        bool recorded = false;
        VectorClock clock;  ///< what has run when the event has
    };
    struct HostCall {
        HostFunction function;
        std::atomic<bool> done{false};
        static void run(void* call) noexcept;
    };

    /// Makes this device the thread's current one. Throws DeviceLost when it is lost, and
    /// ArgumentError inside of a host function.
    void enter(const Caller& caller);
    /// The same for calls that give back; false inside of a host function.
    bool leave(const Caller& caller) noexcept;
    /// Throws what `code`, returned by the CUDA call named, means; nothing for success.
    void check(cudaError_t code, const char* call, const Caller& caller);
    [[noreturn]] void lose(cudaError_t code, const char* call, const Caller& caller);
    [[noreturn]] void refuse(const Caller& caller, const std::string& reason,
                             ErrorFields fields = {}) const;
    [[noreturn]] void run_out(MemoryKind kind, std::uint64_t bytes, std::uint64_t rounded_bytes,
                              std::string_view tag, CallSite site, std::uint64_t free_bytes) const;

    void make_pool(const Caller& caller);
    [[nodiscard]] StreamState& stream_state(StreamRef stream, const Caller& caller);
    [[nodiscard]] EventState& event_state(EventRef event, const Caller& caller);
    [[nodiscard]] StreamState& stream_to_allocate_on(std::uint64_t bytes, StreamRef stream,
                                                     const Caller& caller);
    void check_allocation(cudaError_t code, const char* call, std::uint64_t bytes,
                          const Caller& caller);
    void note_allocation(void* pointer, std::uint64_t bytes, bool outside_pool,
                         const Caller& caller);
    void check_range(MemoryKind kind, const void* pointer, std::uint64_t bytes,
                     const Caller& caller);
    void check_ranges(const std::vector<ByteRange>& ranges, MemoryKind kind, const Caller& caller);
    void note_issue(StreamState& stream, const Caller& caller, bool is_kernel = false);
    void has_run(const EventState& event);
    void give_back(void* pointer, MemoryKind kind) noexcept;
    void forget_host_calls();

    CudaDeviceOptions options_;
    MemoryLedger ledger_;
    std::uint64_t capacity_bytes_ = 0;
    cudaMemPool_t pool_ = nullptr;
    HandleTable<StreamState> streams_;
    HandleTable<EventState> events_;
    std::uint64_t default_stream_ = 0;
    LaneId lanes_ = 0;
    CudaMemory memory_;
    PendingWork pending_;
    std::optional<LateFailure> failure_;
    std::list<HostCall> host_calls_;  ///< that have not been called, for what is known
};

}  // namespace swaplab::sim
