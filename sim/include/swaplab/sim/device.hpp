#pragma once

/// The seam between this project and an accelerator. Nothing here knows tensors, optimizers, files.

#include "swaplab/sim/call_site.hpp"
#include "swaplab/sim/handles.hpp"
#include "swaplab/sim/kernel.hpp"
#include "swaplab/sim/memory_ledger.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace swaplab::sim {

enum class CopyDirection : std::uint8_t { host_to_device, device_to_host, device_to_device };

enum class Access : std::uint8_t { read, write };

/// Whether a stream's work is ordered with the default stream's (cudaStreamNonBlocking: it is not).
enum class StreamKind : std::uint8_t { blocking, non_blocking };

struct MemoryInfo {
    std::uint64_t capacity_bytes = 0;
    std::uint64_t free_bytes = 0;      ///< capacity minus context and reserved
    std::uint64_t reserved_bytes = 0;  ///< charged rounded bytes, and what an allocator keeps
};

/// What every accelerator does.
///
/// Threads: a Device belongs to one rank and is called from that rank's thread only.
/// Order:   work on one stream runs in issue order; two streams are unordered unless an event says
///          so. A call returns when the work is issued, not when it has run.
/// Memory:  every byte handed out is on the ledger before the call returns (charged), and off it
///          when deallocate is called, so that charged figures are equal on every backend.
///          Device memory is not cleared. Device regions start at multiples of 256 B, pinned ones
///          at multiples of 4 KiB.
/// Errors:  OutOfDeviceMemory if a device request does not fit, and nothing has changed then;
///          ArgumentError for arguments that can never be right (wrong direction, over-run, memory
///          of another kind than claimed, freed memory, foreign handles), and nothing was issued;
///          DeviceError for everything else. None of these is sticky: the next call may succeed.
///          Work that fails as it runs is reported by a later call as a DeviceLost, which is
///          sticky: nothing runs any more, and every call that issues, waits or creates throws it.
///          What is noexcept still gives back what the caller owns.
/// Every call that issues work or moves memory carries the caller's CallSite.
class Device {
  public:
    Device(const Device&) = delete;
    Device& operator=(const Device&) = delete;
    virtual ~Device() = default;

    /// `bytes` > 0 of device memory, usable by work on `stream` from now on, and by others that are
    /// ordered after. The address must not be dereferenced by the host.
    [[nodiscard]] virtual void* allocate(std::uint64_t bytes, StreamRef stream,
                                         std::string_view tag,
                                         CallSite site = CallSite::here()) = 0;
    /// Like allocate(), but from the device itself, beside every pool: what a library takes by
    /// cudaMalloc while a framework's allocator keeps the rest. No pool gives anything back for it:
    /// throws OutOfDeviceMemory where what pools reserve leaves too little. Freed by deallocate().
    /// Of devices that know of no pool, and unless overridden: allocate().
    [[nodiscard]] virtual void* allocate_outside_pool(std::uint64_t bytes, StreamRef stream,
                                                      std::string_view tag,
                                                      CallSite site = CallSite::here());
    /// Gives memory back in the order of `stream`: work issued to it before may still use it.
    virtual void deallocate(void* pointer, StreamRef stream,
                            CallSite site = CallSite::here()) noexcept = 0;

    /// `bytes` > 0 of page-locked host memory, zero-filled. Throws OutOfDeviceMemory when a pinned
    /// quota is exceeded.
    [[nodiscard]] virtual void* allocate_pinned(std::uint64_t bytes, std::string_view tag,
                                                CallSite site = CallSite::here()) = 0;
    /// The memory must not be used by unfinished work.
    virtual void deallocate_pinned(void* pointer, CallSite site = CallSite::here()) noexcept = 0;

    [[nodiscard]] virtual StreamRef create_stream(std::string_view name,
                                                  StreamKind kind = StreamKind::non_blocking) = 0;
    /// Work already issued still runs.
    virtual void destroy_stream(StreamRef stream, CallSite site = CallSite::here()) noexcept = 0;
    /// CUDA's legacy default stream: its work runs after all work issued before on blocking
    /// streams, and before all work issued later on them. Belongs to the device, lives as long.
    [[nodiscard]] virtual StreamRef default_stream() = 0;
    [[nodiscard]] virtual EventRef create_event() = 0;
    virtual void destroy_event(EventRef event, CallSite site = CallSite::here()) noexcept = 0;

    /// Copies `bytes` (0 allowed) in the order of `stream`. The host side must be pinned memory of
    /// this device; neither side may be changed by the host until the copy has run.
    virtual void copy_async(void* destination, const void* source, std::uint64_t bytes,
                            CopyDirection direction, StreamRef stream,
                            CallSite site = CallSite::here()) = 0;
    /// Copies `bytes` (0 allowed) between the device and ordinary host memory, which must not be
    /// pinned, in the order of `stream`. To the device: returns when `source` has been read, so
    /// that it may be used again; whether the copy has run by then is not said. To the host:
    /// returns when the copy has run, as if its stream had been synchronized.
    virtual void copy_pageable(void* destination, const void* source, std::uint64_t bytes,
                               CopyDirection direction, StreamRef stream,
                               CallSite site = CallSite::here()) = 0;
    /// Sets `bytes` (0 allowed) of device memory to `value` in the order of `stream`.
    virtual void fill_async(void* destination, std::byte value, std::uint64_t bytes,
                            StreamRef stream, CallSite site = CallSite::here()) = 0;
    virtual void launch(Kernel kernel, StreamRef stream, CallSite site = CallSite::here()) = 0;
    /// Calls `function` in the order of `stream` (cudaLaunchHostFunc). Not called once the device
    /// is lost. Functions of two streams are unordered.
    virtual void call_host(HostFunction function, StreamRef stream,
                           CallSite site = CallSite::here()) = 0;

    /// Marks the work issued to `stream` so far. Recording again replaces the mark; waits issued
    /// before keep the old one (cudaEventRecord).
    virtual void record(EventRef event, StreamRef stream, CallSite site = CallSite::here()) = 0;
    /// Work issued to `stream` from now on runs after what `event` marks now; an event never
    /// recorded is no constraint (cudaStreamWaitEvent).
    virtual void wait(StreamRef stream, EventRef event, CallSite site = CallSite::here()) = 0;
    /// Returns when what `event` marks now has run; the host may then use what that work wrote.
    virtual void synchronize(EventRef event, CallSite site = CallSite::here()) = 0;
    /// True when what `event` marks now has run. A true answer orders the host like synchronize().
    [[nodiscard]] virtual bool query(EventRef event, CallSite site = CallSite::here()) = 0;

    /// Announces that the host is about to read or write pinned memory; called by the access scopes
    /// of PinnedBuffer. On the simulated accelerator an access that is not ordered after all work
    /// touching the range is a finding. Elsewhere a no-op.
    virtual void host_access(const void* pointer, std::uint64_t bytes, Access access,
                             CallSite site = CallSite::here()) = 0;

    [[nodiscard]] virtual MemoryInfo memory_info() const = 0;

    /// Returns when everything issued to `stream` so far has run.
    void synchronize(StreamRef stream, CallSite site = CallSite::here());

    [[nodiscard]] MemoryLedger& ledger() noexcept { return *ledger_; }
    [[nodiscard]] const MemoryLedger& ledger() const noexcept { return *ledger_; }
    /// The rank that this device belongs to; named in every error and finding.
    [[nodiscard]] int rank() const noexcept { return rank_; }

  protected:
    /// `ledger` must outlive the device (a wrapper passes its inner device's).
    Device(int rank, MemoryLedger& ledger) noexcept : rank_(rank), ledger_(&ledger) {}

  private:
    int rank_;
    MemoryLedger* ledger_;
};

}  // namespace swaplab::sim
