/// Memory pools: the default one of each device, and those created.

#include "cuda/standin/pool_handles.hpp"

namespace swaplab::sim {
namespace {

constexpr std::uintptr_t first_pool = 0x20000000;
constexpr std::uintptr_t pool_step = 16;

/// Its device and number, as handles count them.
struct PoolName {
    int ordinal = 0;
    std::size_t number = 0;
};

PoolName name_of_pool(const Runtime& runtime, cudaMemPool_t handle) {
    const std::uintptr_t offset = reinterpret_cast<std::uintptr_t>(handle) - first_pool;
    const std::uintptr_t place = offset / pool_step;
    const auto ordinal = static_cast<int>(place % device_count_max);
    require(offset % pool_step == 0 && ordinal < runtime.options().device_count,
            cudaErrorInvalidValue, "the pool is none of a device");
    return {ordinal, place / device_count_max};
}

void check_properties(const Runtime& runtime, const cudaMemPoolProps& properties) {
    require(properties.allocType == cudaMemAllocationTypePinned, cudaErrorInvalidValue,
            "pools hold pinned allocations");
    require(properties.location.type == cudaMemLocationTypeDevice &&
                properties.handleTypes == cudaMemHandleTypeNone,
            cudaErrorNotSupported, "the stand-in has pools of devices that nobody shares");
    require(properties.location.id >= 0 && properties.location.id < runtime.options().device_count,
            cudaErrorInvalidDevice, "there is no device of that ordinal");
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

cudaMemPool_t pool_handle(const Gpu& gpu, std::size_t number) {
    const auto place = number * device_count_max + static_cast<std::size_t>(gpu.ordinal());
    return reinterpret_cast<cudaMemPool_t>(first_pool + place * pool_step);
}

PoolPlace pool_place(Runtime& runtime, cudaMemPool_t handle) {
    const PoolName name = name_of_pool(runtime, handle);
    Gpu& gpu = runtime.gpu(name.ordinal);
    Pool* const pool = gpu.pool(name.number);
    require(pool != nullptr, cudaErrorInvalidValue, "the pool is destroyed, or never was");
    return {gpu, *pool};
}

}  // namespace swaplab::sim

using namespace swaplab::sim;

extern "C" {

cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int device) {
    return host_call([&](Runtime& runtime) {
        require(pool != nullptr, cudaErrorInvalidValue, "no place for the pool");
        *pool = pool_handle(runtime.gpu(device), 0);
    });
}

// cudaDeviceSetMemPool is not there, so it is always the default one.
cudaError_t cudaDeviceGetMemPool(cudaMemPool_t* pool, int device) {
    return cudaDeviceGetDefaultMemPool(pool, device);
}

cudaError_t cudaMemPoolCreate(cudaMemPool_t* pool, const cudaMemPoolProps* properties) {
    const CallInfo call{"cudaMemPoolCreate"};
    return device_call(call, [&](Runtime& runtime, const Gpu&) {
        require(pool != nullptr && properties != nullptr, cudaErrorInvalidValue,
                "no place for the pool, or no properties");
        check_properties(runtime, *properties);
        Gpu& gpu = runtime.gpu(properties->location.id);
        *pool = pool_handle(gpu, gpu.add_pool());
    });
}

// What is allocated from it stays, as CUDA has it; nothing unused is kept any more.
cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool) {
    return host_call([&](Runtime& runtime) {
        const PoolPlace place = pool_place(runtime, pool);
        require(&place.pool != &place.gpu.default_pool(), cudaErrorInvalidValue,
                "a default pool cannot be destroyed");
        place.gpu.destroy_pool(name_of_pool(runtime, pool).number);
    });
}

cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value) {
    return host_call([&](Runtime& runtime) {
        require(value != nullptr, cudaErrorInvalidValue, "no place for the value");
        pool_attribute(pool_place(runtime, pool).pool, attribute, value, Direction::get);
    });
}

cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value) {
    return host_call([&](Runtime& runtime) {
        require(value != nullptr, cudaErrorInvalidValue, "no value");
        pool_attribute(pool_place(runtime, pool).pool, attribute, value, Direction::set);
    });
}

cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, size_t bytes) {
    return host_call([&](Runtime& runtime) { pool_place(runtime, pool).pool.trim_to(bytes); });
}

}  // extern "C"
