/// Memory of the device and of the host.

#include "cuda/standin/pool_handles.hpp"
#include "cuda/standin/runtime.hpp"

#include "swaplab/sim/mutant.hpp"

#include <algorithm>

namespace swaplab::sim {
namespace {

std::uint64_t charged_bytes(std::uint64_t bytes) {
    constexpr std::uint64_t device_granule_bytes = 256;
    return round_up(bytes, device_granule_bytes);
}

void allocate_pooled(const CallInfo& call, Runtime& runtime, const StreamEntry& entry, Pool& pool,
                     void** pointer) {
    Gpu& gpu = *entry.gpu;
    *pointer = gpu.device().allocate(call.bytes, entry.ref, tag_of(call), site_of(call));
    pool.take(charged_bytes(call.bytes));
    runtime.blocks().add(*pointer, {Block::Kind::pooled, call.bytes, 0, &gpu, nullptr, &pool});
    gpu.note_memory(*pointer, call.bytes);
}

/// The block of device memory that begins at `pointer`. A pointer that is none is a finding, too.
const Block& device_block(Runtime& runtime, const CallInfo& call, void* pointer, Gpu& current) {
    const Block* block = runtime.blocks().find_begin(pointer);
    if (block == nullptr || block->is_host()) {
        current.device().deallocate(pointer, current.allocation_stream(), site_of(call));
        throw Failure(cudaErrorInvalidValue, "the pointer is not the start of device memory");
    }
    return *block;
}

void free_block(Runtime& runtime, const CallInfo& call, void* pointer, StreamRef stream) {
    const Block block = *runtime.blocks().find_begin(pointer);
    runtime.blocks().remove(pointer);
    block.gpu->device().deallocate(pointer, stream, site_of(call));
    if (block.kind == Block::Kind::pooled) {
        block.pool->give_back(charged_bytes(block.bytes));
    }
}

cudaError_t allocate_pinned(const CallInfo& call, void** pointer, unsigned flags) {
    constexpr unsigned known =
        cudaHostAllocPortable | cudaHostAllocMapped | cudaHostAllocWriteCombined;
    return device_call(call, [&](Runtime& runtime, Gpu& gpu) {
        require(pointer != nullptr, cudaErrorInvalidValue, "no place for the pointer");
        require((flags & ~known) == 0, cudaErrorInvalidValue, "unknown flags of host memory");
        *pointer = nullptr;
        if (call.bytes > 0) {
            *pointer = gpu.device().allocate_pinned(call.bytes, tag_of(call), site_of(call));
            runtime.blocks().add(*pointer, {Block::Kind::pinned, call.bytes, flags, &gpu});
        }
    });
}

constexpr std::uintptr_t page_size = 4096;

std::uintptr_t offset_in_page(const void* pointer) {
    return reinterpret_cast<std::uintptr_t>(pointer) % page_size;
}

void* pages_of(void* pointer) {
    return static_cast<std::byte*>(pointer) - offset_in_page(pointer);
}

}  // namespace
}  // namespace swaplab::sim

using namespace swaplab::sim;

extern "C" {

cudaError_t cudaMalloc(void** pointer, size_t bytes) {
    const CallInfo call{"cudaMalloc", Effect::none, bytes};
    return device_call(call, [&](Runtime& runtime, Gpu& gpu) {
        require(pointer != nullptr, cudaErrorInvalidValue, "no place for the pointer");
        *pointer = nullptr;
        if (bytes > 0) {
            const StreamRef stream = gpu.allocation_stream();
            *pointer =
                gpu.device().allocate_outside_pool(bytes, stream, tag_of(call), site_of(call));
            runtime.blocks().add(*pointer, {Block::Kind::device, bytes, 0, &gpu});
            gpu.note_memory(*pointer, bytes);
            gpu.device().synchronize(stream, site_of(call));
        }
    });
}

// Memory of cudaMalloc is given back when nothing uses it any more: the device is waited for, as
// the driver does. Of a pool's memory the caller has to know that.
cudaError_t cudaFree(void* pointer) {
    const CallInfo call{"cudaFree", Effect::release};
    return device_call(call, [&](Runtime& runtime, Gpu& gpu) {
        if (pointer == nullptr) {
            return;
        }
        const Block& block = device_block(runtime, call, pointer, gpu);
        if (block.kind == Block::Kind::device && !SWAPLAB_MUTANT("standin.free_does_not_wait")) {
            block.gpu->unless_lost([&] { runtime.synchronize(*block.gpu, site_of(call)); });
        }
        free_block(runtime, call, pointer, block.gpu->allocation_stream());
    });
}

cudaError_t cudaMallocAsync(void** pointer, size_t bytes, cudaStream_t stream) {
    const CallInfo call{"cudaMallocAsync", Effect::none, bytes};
    return stream_call(call, stream, [&](Runtime& runtime, StreamEntry& entry) {
        require(pointer != nullptr, cudaErrorInvalidValue, "no place for the pointer");
        *pointer = nullptr;
        if (bytes > 0) {
            allocate_pooled(call, runtime, entry, entry.gpu->default_pool(), pointer);
            entry.note_issue();
        }
    });
}

cudaError_t cudaMallocFromPoolAsync(void** pointer, size_t bytes, cudaMemPool_t pool,
                                    cudaStream_t stream) {
    const CallInfo call{"cudaMallocFromPoolAsync", Effect::none, bytes};
    return stream_call(call, stream, [&](Runtime& runtime, StreamEntry& entry) {
        require(pointer != nullptr, cudaErrorInvalidValue, "no place for the pointer");
        const PoolPlace place = pool_place(runtime, pool);
        require(&place.gpu == entry.gpu, cudaErrorInvalidValue,
                "pool and stream are of different devices");
        *pointer = nullptr;
        if (bytes > 0) {
            allocate_pooled(call, runtime, entry, place.pool, pointer);
            entry.note_issue();
        }
    });
}

cudaError_t cudaFreeAsync(void* pointer, cudaStream_t stream) {
    const CallInfo call{"cudaFreeAsync", Effect::release};
    return stream_call(call, stream, [&](Runtime& runtime, StreamEntry& entry) {
        if (pointer == nullptr) {
            return;
        }
        const Block& block = device_block(runtime, call, pointer, *entry.gpu);
        require(block.gpu == entry.gpu, cudaErrorInvalidValue,
                "memory and stream are of different devices");
        free_block(runtime, call, pointer, entry.ref);
        entry.note_issue();
    });
}

cudaError_t cudaHostAlloc(void** pointer, size_t bytes, unsigned int flags) {
    return allocate_pinned({"cudaHostAlloc", Effect::none, bytes}, pointer, flags);
}

cudaError_t cudaMallocHost(void** pointer, size_t bytes) {
    return allocate_pinned({"cudaMallocHost", Effect::none, bytes}, pointer, cudaHostAllocDefault);
}

cudaError_t cudaFreeHost(void* pointer) {
    const CallInfo call{"cudaFreeHost", Effect::release};
    return device_call(call, [&](Runtime& runtime, const Gpu&) {
        if (pointer == nullptr) {
            return;
        }
        const Block* block = runtime.blocks().find_begin(pointer);
        require(block != nullptr && block->kind == Block::Kind::pinned, cudaErrorInvalidValue,
                "the pointer is not the start of pinned memory");
        Gpu& owner = *block->gpu;
        runtime.blocks().remove(pointer);
        owner.device().deallocate_pinned(pointer, site_of(call));
    });
}

cudaError_t cudaHostRegister(void* pointer, size_t bytes, unsigned int flags) {
    constexpr unsigned known = cudaHostRegisterPortable | cudaHostRegisterMapped;
    const CallInfo call{"cudaHostRegister", Effect::none, bytes};
    return device_call(call, [&](Runtime& runtime, Gpu& gpu) {
        require(pointer != nullptr && bytes > 0, cudaErrorInvalidValue, "no memory to register");
        require((flags & ~known) == 0, cudaErrorNotSupported,
                "the stand-in registers ordinary memory alone");
        require(!runtime.is_device_address(pointer), cudaErrorInvalidValue,
                "the memory is not the host's");
        void* const pages = pages_of(pointer);
        const std::uint64_t page_bytes = round_up(offset_in_page(pointer) + bytes, page_size);
        require(!runtime.blocks().overlaps(pages, page_bytes), cudaErrorHostMemoryAlreadyRegistered,
                "some of its pages are pinned already");
        gpu.register_pinned(pages, page_bytes, tag_of(call), site_of(call));
        runtime.blocks().add(pages, {Block::Kind::registered, page_bytes, flags, &gpu, pointer});
    });
}

// Waits, since the caller may give the memory back at once.
cudaError_t cudaHostUnregister(void* pointer) {
    const CallInfo call{"cudaHostUnregister", Effect::release};
    return device_call(call, [&](Runtime& runtime, const Gpu&) {
        void* const pages = pages_of(pointer);
        const Block* block = runtime.blocks().find_begin(pages);
        require(block != nullptr && block->registered == pointer, cudaErrorHostMemoryNotRegistered,
                "no registered memory begins there");
        Gpu& owner = *block->gpu;
        owner.unless_lost([&] { runtime.synchronize(owner, site_of(call)); });
        runtime.blocks().remove(pages);
        owner.device().deallocate_pinned(pages, site_of(call));
    });
}

cudaError_t cudaHostGetFlags(unsigned int* flags, void* pointer) {
    return host_call([&](Runtime& runtime) {
        require(flags != nullptr, cudaErrorInvalidValue, "no place for the flags");
        const Block* block = runtime.blocks().find(pointer);
        require(block != nullptr && block->is_host(), cudaErrorInvalidValue,
                "the pointer is not in pinned memory");
        *flags = block->flags | cudaHostAllocMapped;  // always, with unified addressing
    });
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* result, const void* pointer) {
    return host_call([&](Runtime& runtime) {
        require(result != nullptr, cudaErrorInvalidValue, "no place for the attributes");
        const Block* block = runtime.blocks().find(pointer);
        void* const address = const_cast<void*>(pointer);
        *result = {};
        if (block == nullptr) {
            result->type = cudaMemoryTypeUnregistered;
            result->device = cudaInvalidDeviceId;
            result->hostPointer = address;
            return;
        }
        const bool pinned = block->is_host();
        result->type = pinned ? cudaMemoryTypeHost : cudaMemoryTypeDevice;
        result->device = block->gpu->ordinal();
        result->devicePointer = address;
        result->hostPointer = pinned ? address : nullptr;
    });
}

cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
    return device_call({"cudaMemGetInfo"}, [&](const Runtime&, Gpu& gpu) {
        require(free != nullptr && total != nullptr, cudaErrorInvalidValue,
                "no place for the figures");
        const std::uint64_t kept = gpu.unused_pool_bytes();
        const std::uint64_t uncharged = gpu.device().memory_info().free_bytes;
        *free = uncharged - std::min(kept, uncharged);
        *total = gpu.total_bytes();
    });
}

}  // extern "C"
