/// Copies and fills.

#include "cuda/standin/runtime.hpp"

#include "swaplab/sim/mutant.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

namespace swaplab::sim {
namespace {

enum class Place { pageable, pinned, device };

struct Copy {
    std::byte* destination = nullptr;
    const std::byte* source = nullptr;
    std::uint64_t bytes = 0;
    Place to{};
    Place from{};
};

/// Device memory that is no longer live counts as such: the device refuses it, with a finding.
Place place_of(Runtime& runtime, const void* pointer) {
    const Block* block = runtime.blocks().find(pointer);
    const bool pinned = block != nullptr && block->is_host();
    const bool on_device = block != nullptr ? !pinned : runtime.is_device_address(pointer);
    return on_device ? Place::device : pinned ? Place::pinned : Place::pageable;
}

/// With unified addressing the pointers tell where they are; the kind may only agree.
void check_kind(const Copy& copy, cudaMemcpyKind kind) {
    const bool to_device = copy.to == Place::device;
    const bool from_device = copy.from == Place::device;
    const bool agrees = kind == cudaMemcpyDefault ||
                        (kind == cudaMemcpyHostToHost && !to_device && !from_device) ||
                        (kind == cudaMemcpyHostToDevice && to_device && !from_device) ||
                        (kind == cudaMemcpyDeviceToHost && !to_device && from_device) ||
                        (kind == cudaMemcpyDeviceToDevice && to_device && from_device);
    require(agrees || SWAPLAB_MUTANT("standin.kind_unchecked"), cudaErrorInvalidValue,
            "the pointers are not what the kind of copy says");
}

Copy make_copy(Runtime& runtime, void* destination, const void* source, std::uint64_t bytes,
               cudaMemcpyKind kind) {
    require(kind >= cudaMemcpyHostToHost && kind <= cudaMemcpyDefault,
            cudaErrorInvalidMemcpyDirection, "no such kind of copy");
    require(destination != nullptr && source != nullptr, cudaErrorInvalidValue, "a null pointer");
    const Copy copy{static_cast<std::byte*>(destination), static_cast<const std::byte*>(source),
                    bytes, place_of(runtime, destination), place_of(runtime, source)};
    check_kind(copy, kind);
    return copy;
}

CopyDirection direction_of(const Copy& copy) {
    return copy.to != Place::device     ? CopyDirection::device_to_host
           : copy.from != Place::device ? CopyDirection::host_to_device
                                        : CopyDirection::device_to_device;
}

/// Copies from host to host are the host's own, once what was issued to the stream before has run.
void copy_on_host(Runtime& runtime, StreamEntry& entry, const Copy& copy, CallSite site) {
    entry.gpu->synchronize(entry, site);
    runtime.host_access(copy.source, copy.bytes, Access::read, site);
    runtime.host_access(copy.destination, copy.bytes, Access::write, site);
    std::memmove(copy.destination, copy.source, copy.bytes);
}

void issue(Runtime& runtime, StreamEntry& entry, const Copy& copy, CallSite site) {
    if (copy.to != Place::device && copy.from != Place::device) {
        return copy_on_host(runtime, entry, copy, site);
    }
    SimulatedDevice& device = entry.gpu->device();
    const bool pageable = copy.to == Place::pageable || copy.from == Place::pageable;
    if (pageable) {
        device.copy_pageable(copy.destination, copy.source, copy.bytes, direction_of(copy),
                             entry.ref, site);
    } else {
        device.copy_async(copy.destination, copy.source, copy.bytes, direction_of(copy), entry.ref,
                          site);
    }
    entry.note_issue();
}

/// One of cudaMemcpyBatchAsync: where the attributes of each copy are found.
class BatchAttributes {
  public:
    BatchAttributes(const cudaMemcpyAttributes* attributes, const std::size_t* firsts,
                    std::size_t count, std::size_t copies)
        : attributes_(attributes), firsts_(firsts), count_(count) {
        require(attributes != nullptr && firsts != nullptr && count > 0 && count <= copies &&
                    firsts[0] == 0,
                cudaErrorInvalidValue, "the attributes do not begin with the first copy");
        for (std::size_t i = 1; i < count; ++i) {
            require(firsts[i] > firsts[i - 1] && firsts[i] < copies, cudaErrorInvalidValue,
                    "the attributes are not in the order of copies");
        }
    }
    [[nodiscard]] cudaMemcpySrcAccessOrder order_of(std::size_t copy) const {
        const auto after = std::upper_bound(firsts_, firsts_ + count_, copy);
        const cudaMemcpySrcAccessOrder order = attributes_[after - firsts_ - 1].srcAccessOrder;
        require(order >= cudaMemcpySrcAccessOrderStream && order <= cudaMemcpySrcAccessOrderAny,
                cudaErrorInvalidValue, "no such order of source accesses");
        return order;
    }

  private:
    const cudaMemcpyAttributes* attributes_;
    const std::size_t* firsts_;
    std::size_t count_;
};

/// Returns when the copy has run, but for two of its kinds: within the device it does not wait at
/// all, and from pageable memory it waits until that has been read.
cudaError_t copy_now(void* destination, const void* source, std::uint64_t bytes,
                     cudaMemcpyKind kind, cudaStream_t stream) {
    const CallInfo call{"cudaMemcpy", Effect::none, bytes};
    return stream_call(call, stream, [&](Runtime& runtime, StreamEntry& entry) {
        if (bytes == 0) {
            return;
        }
        const Copy copy = make_copy(runtime, destination, source, bytes, kind);
        issue(runtime, entry, copy, site_of(call));
        const bool waits = copy.to == Place::pinned || copy.from == Place::pinned;
        if (waits && !SWAPLAB_MUTANT("standin.copy_does_not_wait")) {
            entry.gpu->synchronize(entry, site_of(call));
        }
    });
}

/// Memory outside of blocks is of no device; a fill is for memory of one.
cudaError_t fill(const CallInfo& call, void* destination, int value, cudaStream_t stream) {
    return stream_call(call, stream, [&](Runtime& runtime, StreamEntry& entry) {
        if (call.bytes == 0) {
            return;
        }
        require(place_of(runtime, destination) == Place::device, cudaErrorInvalidValue,
                "the memory to be filled is not of the device");
        entry.gpu->device().fill_async(destination, static_cast<std::byte>(value), call.bytes,
                                       entry.ref, site_of(call));
        entry.note_issue();
    });
}

}  // namespace
}  // namespace swaplab::sim

using namespace swaplab::sim;

extern "C" {

cudaError_t cudaMemcpyAsync(void* destination, const void* source, size_t bytes,
                            cudaMemcpyKind kind, cudaStream_t stream) {
    const CallInfo call{"cudaMemcpyAsync", Effect::none, bytes};
    return stream_call(call, stream, [&](Runtime& runtime, StreamEntry& entry) {
        if (bytes > 0) {
            issue(runtime, entry, make_copy(runtime, destination, source, bytes, kind),
                  site_of(call));
        }
    });
}

cudaError_t cudaMemcpy(void* destination, const void* source, size_t bytes, cudaMemcpyKind kind) {
    return copy_now(destination, source, bytes, kind, cudaStreamLegacy);
}

cudaError_t cudaMemcpy_ptds(void* destination, const void* source, size_t bytes,
                            cudaMemcpyKind kind) {
    return copy_now(destination, source, bytes, kind, cudaStreamPerThread);
}

cudaError_t cudaMemcpyBatchAsync(void* const* destinations, const void* const* sources,
                                 const size_t* sizes, size_t count,
                                 cudaMemcpyAttributes* attributes, size_t* firsts,
                                 size_t attribute_count, cudaStream_t stream) {
    const CallInfo call{"cudaMemcpyBatchAsync"};
    return stream_call(call, stream, [&](Runtime& runtime, StreamEntry& entry) {
        require(stream != nullptr && stream != cudaStreamLegacy, cudaErrorInvalidValue,
                "batches are not for the default stream");
        require(destinations != nullptr && sources != nullptr && sizes != nullptr && count > 0,
                cudaErrorInvalidValue, "a batch without copies");
        const BatchAttributes batch(attributes, firsts, attribute_count, count);
        bool waits = false;
        std::vector<Copy> copies;
        for (std::size_t i = 0; i < count; ++i) {
            require(sizes[i] > 0, cudaErrorInvalidValue, "a copy of 0 bytes");
            waits = waits || batch.order_of(i) == cudaMemcpySrcAccessOrderDuringApiCall;
            copies.push_back(
                make_copy(runtime, destinations[i], sources[i], sizes[i], cudaMemcpyDefault));
        }
        for (const Copy& copy : copies) {
            issue(runtime, entry, copy, site_of(call));
        }
        if (waits) {
            entry.gpu->synchronize(entry, site_of(call));
        }
    });
}

cudaError_t cudaMemsetAsync(void* destination, int value, size_t bytes, cudaStream_t stream) {
    return fill({"cudaMemsetAsync", Effect::none, bytes}, destination, value, stream);
}

// Does not wait, either: the memory is the device's.
cudaError_t cudaMemset(void* destination, int value, size_t bytes) {
    return fill({"cudaMemset", Effect::none, bytes}, destination, value, cudaStreamLegacy);
}

}  // extern "C"
