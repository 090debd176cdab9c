/// Streams, events, and the work that they order.

#include "cuda/cuda_backend.hpp"
#include "cuda/cuda_error.hpp"
#include "cuda/write_kernel.hpp"

#include "swaplab/sim/cuda/standin.hpp"
#include "swaplab/sim/mutant.hpp"

#include <utility>

namespace swaplab::sim {
namespace {

cudaMemcpyKind kind_of(CopyDirection direction) {
    switch (direction) {
        case CopyDirection::host_to_device:
            return cudaMemcpyHostToDevice;
        case CopyDirection::device_to_host:
            return cudaMemcpyDeviceToHost;
        case CopyDirection::device_to_device:
            return cudaMemcpyDeviceToDevice;
    }
    return cudaMemcpyDefault;
}

const char* name_of_copy(CopyDirection direction) {
    switch (direction) {
        case CopyDirection::host_to_device:
            return "copy h2d";
        case CopyDirection::device_to_host:
            return "copy d2h";
        case CopyDirection::device_to_device:
            return "copy d2d";
    }
    return "copy";
}

}  // namespace

std::function<void(void*)> cuda_write_launcher(void* target, std::vector<std::byte> bytes) {
    return [target, bytes = std::move(bytes)](void* native_stream) {
        launch_write(static_cast<std::byte*>(target), bytes, native_stream);
    };
}

StreamRef CudaBackend::create_stream(std::string_view name, StreamKind kind) {
    const Caller caller{"create_stream", CallSite::here(), name};
    enter(caller);
    cudaStream_t native = nullptr;
    check(
        cudaStreamCreateWithFlags(
            &native, kind == StreamKind::non_blocking ? cudaStreamNonBlocking : cudaStreamDefault),
        "cudaStreamCreateWithFlags", caller);
    return {*this, streams_.add({native, lanes_++, 0, {}})};
}

void CudaBackend::destroy_stream(StreamRef stream, CallSite site) noexcept {
    StreamState* state = &stream.device() == this ? streams_.find(stream.handle()) : nullptr;
    if (state != nullptr && state->native != cudaStreamLegacy && leave({"destroy_stream", site})) {
        cudaStreamDestroy(state->native);
        static_cast<void>(cudaGetLastError());
        streams_.remove(stream.handle());
    }
}

EventRef CudaBackend::create_event() {
    const Caller caller{"create_event", CallSite::here()};
    enter(caller);
    cudaEvent_t native = nullptr;
    check(cudaEventCreateWithFlags(&native, cudaEventDisableTiming), "cudaEventCreateWithFlags",
          caller);
    return {*this, events_.add({native, false, {}})};
}

void CudaBackend::destroy_event(EventRef event, CallSite site) noexcept {
    EventState* state = &event.device() == this ? events_.find(event.handle()) : nullptr;
    if (state != nullptr && leave({"destroy_event", site})) {
        cudaEventDestroy(state->native);
        static_cast<void>(cudaGetLastError());
        events_.remove(event.handle());
    }
}

void CudaBackend::note_issue(StreamState& stream, const Caller& caller, bool is_kernel) {
    const Epoch epoch{stream.lane, ++stream.issued};
    stream.clock.advance(epoch);
    pending_.add({epoch, caller.text(), caller.site, is_kernel});
}

void CudaBackend::copy_async(void* destination, const void* source, std::uint64_t bytes,
                             CopyDirection direction, StreamRef stream, CallSite site) {
    const Caller caller{name_of_copy(direction), site};
    enter(caller);
    StreamState& state = stream_state(stream, caller);
    if (bytes == 0) {
        return;
    }
    check_range(
        direction == CopyDirection::device_to_host ? MemoryKind::pinned : MemoryKind::device,
        destination, bytes, caller);
    check_range(
        direction == CopyDirection::host_to_device ? MemoryKind::pinned : MemoryKind::device,
        source, bytes, caller);
    check(cudaMemcpyAsync(destination, source, bytes, kind_of(direction), state.native),
          "cudaMemcpyAsync", caller);
    note_issue(state, caller);
}

void CudaBackend::copy_pageable(void* destination, const void* source, std::uint64_t bytes,
                                CopyDirection direction, StreamRef stream, CallSite site) {
    const bool to_host = direction == CopyDirection::device_to_host;
    const Caller caller{to_host ? "copy d2h pageable" : "copy h2d pageable", site};
    enter(caller);
    StreamState& state = stream_state(stream, caller);
    if (direction == CopyDirection::device_to_device) {
        refuse(caller, "device to device has no pageable side; use copy_async");
    }
    if (bytes == 0) {
        return;
    }
    check_range(MemoryKind::device, to_host ? source : destination, bytes, caller);
    const void* host = to_host ? destination : source;
    for (const MemoryKind kind : {MemoryKind::device, MemoryKind::pinned}) {
        if (memory_.find(host, kind) != nullptr) {
            refuse(caller, "the host side is not pageable memory; use copy_async");
        }
    }
    check(cudaMemcpyAsync(destination, source, bytes, kind_of(direction), state.native),
          "cudaMemcpyAsync", caller);
    note_issue(state, caller);
    // Whether the driver has staged the source, or run the copy, is not promised; a wait is.
    check(cudaStreamSynchronize(state.native), "cudaStreamSynchronize", caller);
    pending_.confirm(state.clock);
}

void CudaBackend::fill_async(void* destination, std::byte value, std::uint64_t bytes,
                             StreamRef stream, CallSite site) {
    const Caller caller{"fill", site};
    enter(caller);
    StreamState& state = stream_state(stream, caller);
    if (bytes == 0) {
        return;
    }
    check_range(MemoryKind::device, destination, bytes, caller);
    check(cudaMemsetAsync(destination, std::to_integer<int>(value), bytes, state.native),
          "cudaMemsetAsync", caller);
    note_issue(state, caller);
}

void CudaBackend::launch(Kernel kernel, StreamRef stream, CallSite site) {
    const Caller caller{"launch", site, kernel.name};
    enter(caller);
    StreamState& state = stream_state(stream, caller);
    check_ranges(kernel.reads, MemoryKind::device, caller);
    check_ranges(kernel.writes, MemoryKind::device, caller);
    if (!kernel.cuda_launcher) {
        refuse(caller, "the kernel has no CUDA launcher; register one before it is made");
    }
    kernel.cuda_launcher(state.native);
    check(cudaGetLastError(), "cudaLaunchKernel", caller);
    note_issue(state, caller, true);
}

void CudaBackend::call_host(HostFunction function, StreamRef stream, CallSite site) {
    const Caller caller{"call host", site, function.name};
    enter(caller);
    StreamState& state = stream_state(stream, caller);
    if (!function.body) {
        refuse(caller, "the function has no body");
    }
    check_ranges(function.reads, MemoryKind::pinned, caller);
    check_ranges(function.writes, MemoryKind::pinned, caller);
    forget_host_calls();
    HostCall& call = host_calls_.emplace_back();
    call.function = std::move(function);
    const cudaError_t code = cudaLaunchHostFunc(state.native, HostCall::run, &call);
    if (code != cudaSuccess) {
        call.done = true;
    }
    check(code, "cudaLaunchHostFunc", {"call host", site, call.function.name});
    note_issue(state, {"call host", site, call.function.name});
}

void CudaBackend::record(EventRef event, StreamRef stream, CallSite site) {
    const Caller caller{"record", site};
    enter(caller);
    EventState& mark = event_state(event, caller);
    StreamState& state = stream_state(stream, caller);
    check(cudaEventRecord(mark.native, state.native), "cudaEventRecord", caller);
    mark.recorded = true;
    mark.clock = state.clock;
}

void CudaBackend::wait(StreamRef stream, EventRef event, CallSite site) {
    const Caller caller{"wait", site};
    enter(caller);
    StreamState& state = stream_state(stream, caller);
    EventState& mark = event_state(event, caller);
    if (mark.recorded && !SWAPLAB_MUTANT("cuda.wait_ignored")) {
        check(cudaStreamWaitEvent(state.native, mark.native, cudaEventWaitDefault),
              "cudaStreamWaitEvent", caller);
        state.clock.join(mark.clock);
    }
}

void CudaBackend::has_run(const EventState& event) {
    pending_.confirm(event.clock);
    forget_host_calls();
}

void CudaBackend::synchronize(EventRef event, CallSite site) {
    const Caller caller{"synchronize", site};
    enter(caller);
    EventState& mark = event_state(event, caller);
    if (mark.recorded && !SWAPLAB_MUTANT("cuda.synchronize_ignored")) {
        check(cudaEventSynchronize(mark.native), "cudaEventSynchronize", caller);
        has_run(mark);
    }
}

bool CudaBackend::query(EventRef event, CallSite site) {
    const Caller caller{"query", site};
    enter(caller);
    EventState& mark = event_state(event, caller);
    if (!mark.recorded) {
        return true;
    }
    const cudaError_t code = cudaEventQuery(mark.native);
    if (code == cudaErrorNotReady) {
        static_cast<void>(cudaGetLastError());
        return false;
    }
    check(code, "cudaEventQuery", caller);
    has_run(mark);
    return true;
}

void CudaBackend::host_access(const void* pointer, std::uint64_t bytes, Access access,
                              CallSite site) {
    if (bytes == 0) {
        return;
    }
    check_range(MemoryKind::pinned, pointer, bytes,
                {access == Access::read ? "host read" : "host write", site});
    if (Standin* found = standin()) {
        found->host_access(pointer, bytes, access, site);
    }
}

}  // namespace swaplab::sim
