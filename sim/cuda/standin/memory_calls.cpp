/// Memory of the device and of the host, and memory pools.

#include "cuda/standin/runtime.hpp"

#include "swaplab/sim/mutant.hpp"

#include <algorithm>

namespace swaplab::sim {
namespace {

/// A handle for the pool of each device, at a place where no memory is.
constexpr std::uintptr_t first_pool = 0x20000000;
constexpr std::uintptr_t pool_step = 16;

cudaMemPool_t pool_handle(const Gpu& gpu) {
    return reinterpret_cast<cudaMemPool_t>(first_pool +
                                           static_cast<std::uintptr_t>(gpu.ordinal()) * pool_step);
}

Gpu& gpu_of_pool(Runtime& runtime, cudaMemPool_t pool) {
    const std::uintptr_t offset = reinterpret_cast<std::uintptr_t>(pool) - first_pool;
    const std::uintptr_t ordinal = offset / pool_step;
    require(offset % pool_step == 0 &&
                ordinal < static_cast<std::uintptr_t>(runtime.options().device_count),
            cudaErrorInvalidValue, "the pool is none of a device");
    return runtime.gpu(static_cast<int>(ordinal));
}

std::uint64_t charged_bytes(std::uint64_t bytes) {
    constexpr std::uint64_t device_granule_bytes = 256;
    return round_up(bytes, device_granule_bytes);
}

void allocate_pooled(const CallInfo& call, Runtime& runtime, const StreamEntry& entry,
                     void** pointer) {
    Gpu& gpu = *entry.gpu;
    *pointer = gpu.device().allocate(call.bytes, entry.ref, tag_of(call), site_of(call));
    gpu.pool().take(charged_bytes(call.bytes));
    runtime.blocks().add(*pointer, {Block::Kind::pooled, call.bytes, 0, &gpu});
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
        block.gpu->pool().give_back(charged_bytes(block.bytes));
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

enum class Direction { get, set };

template <class T>
void exchange(T& own, void* value, Direction direction) {
    if (direction == Direction::set) {
        own = *static_cast<T*>(value);
    } else {
        *static_cast<T*>(value) = own;
    }
}

/// One attribute of a pool, between it and `value`.
void pool_attribute(Pool& pool, cudaMemPoolAttr attribute, void* value, Direction direction) {
    auto* const bytes = static_cast<std::uint64_t*>(value);
    const bool sets = direction == Direction::set;
    switch (attribute) {
        // Kept, but without effect: memory is used again where its order is known, or where the
        // host is made to wait for it.
        case cudaMemPoolReuseFollowEventDependencies:
            return exchange(pool.reuse_follows_events, value, direction);
        case cudaMemPoolReuseAllowOpportunistic:
            return exchange(pool.reuse_is_opportunistic, value, direction);
        case cudaMemPoolReuseAllowInternalDependencies:
            return exchange(pool.reuse_adds_dependencies, value, direction);
        case cudaMemPoolAttrReleaseThreshold:
            return exchange(pool.release_threshold_bytes, value, direction);
        case cudaMemPoolAttrReservedMemHigh:
            require(!sets || *bytes == 0, cudaErrorInvalidValue, "a high mark is set to 0 only");
            return sets ? pool.forget_reserved_max() : void(*bytes = pool.reserved_bytes_max());
        case cudaMemPoolAttrUsedMemHigh:
            require(!sets || *bytes == 0, cudaErrorInvalidValue, "a high mark is set to 0 only");
            return sets ? pool.forget_used_max() : void(*bytes = pool.used_bytes_max());
        case cudaMemPoolAttrReservedMemCurrent:
            require(!sets, cudaErrorInvalidValue, "current figures are not set");
            *bytes = pool.reserved_bytes();
            return;
        case cudaMemPoolAttrUsedMemCurrent:
            require(!sets, cudaErrorInvalidValue, "current figures are not set");
            *bytes = pool.used_bytes();
            return;
        default:
            throw Failure(cudaErrorInvalidValue, "unknown attribute of a pool");
    }
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
            *pointer = gpu.device().allocate(bytes, stream, tag_of(call), site_of(call));
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
            allocate_pooled(call, runtime, entry, pointer);
            entry.note_issue();
        }
    });
}

cudaError_t cudaMallocFromPoolAsync(void** pointer, size_t bytes, cudaMemPool_t pool,
                                    cudaStream_t stream) {
    const CallInfo call{"cudaMallocFromPoolAsync", Effect::none, bytes};
    return stream_call(call, stream, [&](Runtime& runtime, StreamEntry& entry) {
        require(pointer != nullptr, cudaErrorInvalidValue, "no place for the pointer");
        require(&gpu_of_pool(runtime, pool) == entry.gpu, cudaErrorInvalidValue,
                "pool and stream are of different devices");
        *pointer = nullptr;
        if (bytes > 0) {
            allocate_pooled(call, runtime, entry, pointer);
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
        const std::uint64_t kept = gpu.pool().reserved_bytes() - gpu.pool().used_bytes();
        const std::uint64_t uncharged = gpu.device().memory_info().free_bytes;
        *free = uncharged - std::min(kept, uncharged);
        *total = gpu.total_bytes();
    });
}

cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int device) {
    return host_call([&](Runtime& runtime) {
        require(pool != nullptr, cudaErrorInvalidValue, "no place for the pool");
        *pool = pool_handle(runtime.gpu(device));
    });
}

// A device has its one pool.
cudaError_t cudaDeviceGetMemPool(cudaMemPool_t* pool, int device) {
    return cudaDeviceGetDefaultMemPool(pool, device);
}

cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value) {
    return host_call([&](Runtime& runtime) {
        require(value != nullptr, cudaErrorInvalidValue, "no place for the value");
        pool_attribute(gpu_of_pool(runtime, pool).pool(), attribute, value, Direction::get);
    });
}

cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value) {
    return host_call([&](Runtime& runtime) {
        require(value != nullptr, cudaErrorInvalidValue, "no value");
        pool_attribute(gpu_of_pool(runtime, pool).pool(), attribute, value, Direction::set);
    });
}

cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, size_t bytes) {
    return host_call([&](Runtime& runtime) { gpu_of_pool(runtime, pool).pool().trim_to(bytes); });
}

}  // extern "C"
