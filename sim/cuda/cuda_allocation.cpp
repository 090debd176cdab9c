/// Device and pinned memory.

#include "cuda/cuda_backend.hpp"
#include "cuda/cuda_error.hpp"

#include "swaplab/sim/mutant.hpp"
#include "swaplab/sim/units.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace swaplab::sim {
namespace {

constexpr std::uint64_t device_granule_bytes = 256;
constexpr std::uint64_t pinned_granule_bytes = 4096;

}  // namespace

MemoryInfo CudaBackend::memory_info() const {
    const std::uint64_t charged = ledger_.now(MemoryKind::device, Size::rounded);
    return {capacity_bytes_, capacity_bytes_ - std::min(capacity_bytes_, charged), charged};
}

MemoryInfo CudaBackend::gpu_memory() const {
    std::size_t free_bytes = 0;
    std::size_t total_bytes = 0;
    cudaSetDevice(options_.ordinal);
    const cudaError_t code = cudaMemGetInfo(&free_bytes, &total_bytes);
    if (code != cudaSuccess) {
        throw DeviceError(fmt::format("rank {}: cudaMemGetInfo returned {}; {}", rank(),
                                      describe(code), advice(code)),
                          {{"call", "cudaMemGetInfo"}, {"code", cudaGetErrorName(code)}});
    }
    return {total_bytes, free_bytes};
}

std::uint64_t CudaBackend::pool_peak_bytes() const {
    std::uint64_t bytes = 0;
    cudaMemPoolGetAttribute(pool_, cudaMemPoolAttrReservedMemHigh, &bytes);
    return bytes;
}

void CudaBackend::forget_pool_peak() {
    const Caller caller{"forget_pool_peak", CallSite::here()};
    enter(caller);
    check(cudaDeviceSynchronize(), "cudaDeviceSynchronize", caller);
    check(cudaMemPoolTrimTo(pool_, 0), "cudaMemPoolTrimTo", caller);
    std::uint64_t zero = 0;
    check(cudaMemPoolSetAttribute(pool_, cudaMemPoolAttrReservedMemHigh, &zero),
          "cudaMemPoolSetAttribute", caller);
}

std::vector<std::byte> CudaBackend::read_block(const void* pointer) {
    const Caller caller{"read_block", CallSite::here()};
    enter(caller);
    check_range(MemoryKind::device, pointer, 1, caller);
    const CudaBlock& block = *memory_.find(pointer, MemoryKind::device);
    std::vector<std::byte> bytes(block.bytes - block.offset_bytes);
    check(cudaDeviceSynchronize(), "cudaDeviceSynchronize", caller);
    check(cudaMemcpyAsync(bytes.data(), pointer, bytes.size(), cudaMemcpyDeviceToHost,
                          cudaStreamLegacy),
          "cudaMemcpyAsync", caller);
    check(cudaStreamSynchronize(cudaStreamLegacy), "cudaStreamSynchronize", caller);
    return bytes;
}

void* CudaBackend::allocate(std::uint64_t bytes, StreamRef stream, std::string_view tag,
                            CallSite site) {
    const Caller caller{"allocate", site, tag};
    StreamState& state = stream_to_allocate_on(bytes, stream, caller);
    void* pointer = nullptr;
    const cudaError_t code = cudaMallocFromPoolAsync(&pointer, bytes, pool_, state.native);
    check_allocation(code, "cudaMallocFromPoolAsync", bytes, caller);
    note_allocation(pointer, bytes, false, caller);
    note_issue(state, caller);
    return pointer;
}

void* CudaBackend::allocate_outside_pool(std::uint64_t bytes, StreamRef stream,
                                         std::string_view tag, CallSite site) {
    const Caller caller{"allocate_outside_pool", site, tag};
    static_cast<void>(stream_to_allocate_on(bytes, stream, caller));
    void* pointer = nullptr;
    const cudaError_t code = cudaMalloc(&pointer, bytes);
    check_allocation(code, "cudaMalloc", bytes, caller);
    note_allocation(pointer, bytes, true, caller);
    return pointer;
}

CudaBackend::StreamState& CudaBackend::stream_to_allocate_on(std::uint64_t bytes, StreamRef stream,
                                                             const Caller& caller) {
    enter(caller);
    StreamState& state = stream_state(stream, caller);
    if (bytes == 0) {
        refuse(caller, "0 bytes asked; a buffer of 0 bytes has no memory");
    }
    const std::uint64_t rounded_bytes = round_up(bytes, device_granule_bytes);
    const std::uint64_t free_bytes = memory_info().free_bytes;
    if ((rounded_bytes < bytes || rounded_bytes > free_bytes) &&
        !SWAPLAB_MUTANT("cuda.capacity_unchecked")) {
        run_out(MemoryKind::device, bytes, rounded_bytes, caller.subject, caller.site, free_bytes);
    }
    return state;
}

void CudaBackend::note_allocation(void* pointer, std::uint64_t bytes, bool outside_pool,
                                  const Caller& caller) {
    const MemoryLedger::Id id =
        ledger_.charge(MemoryKind::device, bytes, round_up(bytes, device_granule_bytes),
                       caller.subject, caller.site);
    ledger_.occupy(id);
    memory_.add(pointer, {MemoryKind::device, bytes, std::string(caller.subject), caller.site, id,
                          outside_pool});
}

void CudaBackend::check_allocation(cudaError_t code, const char* call, std::uint64_t bytes,
                                   const Caller& caller) {
    if (code == cudaErrorMemoryAllocation) {
        static_cast<void>(cudaGetLastError());
        run_out(MemoryKind::device, bytes, round_up(bytes, device_granule_bytes), caller.subject,
                caller.site, gpu_memory().free_bytes);
    }
    check(code, call, caller);
}

// A code that giving back returns says that the device is lost; the next call finds that out.
void CudaBackend::deallocate(void* pointer, StreamRef stream, CallSite site) noexcept {
    const Caller caller{"deallocate", site};
    StreamState* state = &stream.device() == this ? streams_.find(stream.handle()) : nullptr;
    if (!leave(caller)) {
        return;
    }
    const CudaBlock* block = memory_.find(pointer, MemoryKind::device);
    if (state == nullptr || (block != nullptr && block->outside_pool)) {
        cudaFree(pointer);
    } else if (cudaFreeAsync(pointer, state->native) == cudaSuccess) {
        note_issue(*state, caller);
    }
    give_back(pointer, MemoryKind::device);
}

void* CudaBackend::allocate_pinned(std::uint64_t bytes, std::string_view tag, CallSite site) {
    const Caller caller{"allocate_pinned", site, tag};
    enter(caller);
    if (bytes == 0) {
        refuse(caller, "0 bytes asked; a buffer of 0 bytes has no memory");
    }
    const std::uint64_t rounded_bytes = round_up(bytes, pinned_granule_bytes);
    void* pointer = nullptr;
    const cudaError_t code = cudaHostAlloc(&pointer, bytes, cudaHostAllocPortable);
    if (code == cudaErrorMemoryAllocation) {
        static_cast<void>(cudaGetLastError());
        run_out(MemoryKind::pinned, bytes, rounded_bytes, tag, site, 0);
    }
    check(code, "cudaHostAlloc", caller);
    std::memset(pointer, 0, bytes);
    const MemoryLedger::Id id = ledger_.charge(MemoryKind::pinned, bytes, rounded_bytes, tag, site);
    ledger_.occupy(id);
    memory_.add(pointer, {MemoryKind::pinned, bytes, std::string(tag), site, id});
    return pointer;
}

void CudaBackend::deallocate_pinned(void* pointer, CallSite site) noexcept {
    const Caller caller{"deallocate_pinned", site};
    if (leave(caller)) {
        cudaFreeHost(pointer);
        give_back(pointer, MemoryKind::pinned);
    }
}

void CudaBackend::give_back(void* pointer, MemoryKind kind) noexcept {
    static_cast<void>(cudaGetLastError());
    const CudaBlock* block = memory_.find(pointer, kind);
    if (block != nullptr && block->offset_bytes == 0) {
        ledger_.discharge(block->ledger_id);
        ledger_.vacate(block->ledger_id);
        memory_.remove(pointer);
    }
}

void CudaBackend::check_range(MemoryKind kind, const void* pointer, std::uint64_t bytes,
                              const Caller& caller) {
    const CudaBlock* block = memory_.find(pointer, kind);
    if (block == nullptr && !SWAPLAB_MUTANT("cuda.stranger_unchecked")) {
        refuse(caller, kind == MemoryKind::device
                           ? "the address is not live device memory of this device"
                           : "the host side is not live pinned memory of this device; allocate it "
                             "with PinnedBuffer");
    }
    if (block == nullptr) {
        return;
    }
    const std::uint64_t rest = block->bytes - block->offset_bytes;
    if (bytes > rest && !SWAPLAB_MUTANT("cuda.overrun_unchecked")) {
        refuse(caller,
               fmt::format("{} B from offset {} of \"{}\" on end beyond its {} B (allocated at {})",
                           bytes, block->offset_bytes, block->tag, block->bytes,
                           format_site(block->site)),
               {{"tag", block->tag},
                {"expected", fmt::format("at most {} B", rest)},
                {"found", fmt::format("{} B", bytes)}});
    }
}

void CudaBackend::check_ranges(const std::vector<ByteRange>& ranges, MemoryKind kind,
                               const Caller& caller) {
    for (const ByteRange& range : ranges) {
        if (range.bytes != 0) {
            check_range(kind, range.pointer, range.bytes, caller);
        }
    }
}

}  // namespace swaplab::sim
