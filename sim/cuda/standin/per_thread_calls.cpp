/// The calls of programs built with `--default-stream per-thread`: stream 0 is the thread's own.

#include <cuda_runtime_api.h>

namespace {

cudaStream_t own(cudaStream_t stream) noexcept {
    return stream == nullptr ? cudaStreamPerThread : stream;
}

}  // namespace

extern "C" {

cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments,
                               size_t shared_bytes, cudaStream_t stream);

cudaError_t __cudaLaunchKernel_ptsz(cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments,
                                    size_t shared_bytes, cudaStream_t stream) {
    return __cudaLaunchKernel(kernel, grid, block, arguments, shared_bytes, own(stream));
}

cudaError_t cudaLaunchKernel_ptsz(const void* stub, dim3 grid, dim3 block, void** arguments,
                                  size_t shared_bytes, cudaStream_t stream) {
    return cudaLaunchKernel(stub, grid, block, arguments, shared_bytes, own(stream));
}

cudaError_t cudaLaunchKernelExC_ptsz(const cudaLaunchConfig_t* config, const void* stub,
                                     void** arguments) {
    if (config == nullptr) {
        return cudaLaunchKernelExC(nullptr, stub, arguments);
    }
    cudaLaunchConfig_t own_config = *config;
    own_config.stream = own(config->stream);
    return cudaLaunchKernelExC(&own_config, stub, arguments);
}

cudaError_t cudaLaunchHostFunc_ptsz(cudaStream_t stream, cudaHostFn_t function, void* data) {
    return cudaLaunchHostFunc(own(stream), function, data);
}

cudaError_t cudaMallocAsync_ptsz(void** pointer, size_t bytes, cudaStream_t stream) {
    return cudaMallocAsync(pointer, bytes, own(stream));
}

cudaError_t cudaMallocFromPoolAsync_ptsz(void** pointer, size_t bytes, cudaMemPool_t pool,
                                         cudaStream_t stream) {
    return cudaMallocFromPoolAsync(pointer, bytes, pool, own(stream));
}

cudaError_t cudaFreeAsync_ptsz(void* pointer, cudaStream_t stream) {
    return cudaFreeAsync(pointer, own(stream));
}

cudaError_t cudaMemcpyAsync_ptsz(void* destination, const void* source, size_t bytes,
                                 cudaMemcpyKind kind, cudaStream_t stream) {
    return cudaMemcpyAsync(destination, source, bytes, kind, own(stream));
}

cudaError_t cudaMemcpyBatchAsync_ptsz(void* const* destinations, const void* const* sources,
                                      const size_t* sizes, size_t count,
                                      cudaMemcpyAttributes* attributes, size_t* firsts,
                                      size_t attribute_count, cudaStream_t stream) {
    return cudaMemcpyBatchAsync(destinations, sources, sizes, count, attributes, firsts,
                                attribute_count, own(stream));
}

cudaError_t cudaMemsetAsync_ptsz(void* destination, int value, size_t bytes, cudaStream_t stream) {
    return cudaMemsetAsync(destination, value, bytes, own(stream));
}

cudaError_t cudaMemset_ptds(void* destination, int value, size_t bytes) {
    return cudaMemsetAsync(destination, value, bytes, cudaStreamPerThread);
}

cudaError_t cudaEventRecord_ptsz(cudaEvent_t event, cudaStream_t stream) {
    return cudaEventRecord(event, own(stream));
}

cudaError_t cudaEventRecordWithFlags_ptsz(cudaEvent_t event, cudaStream_t stream,
                                          unsigned int flags) {
    return cudaEventRecordWithFlags(event, own(stream), flags);
}

cudaError_t cudaStreamWaitEvent_ptsz(cudaStream_t stream, cudaEvent_t event, unsigned int flags) {
    return cudaStreamWaitEvent(own(stream), event, flags);
}

cudaError_t cudaStreamSynchronize_ptsz(cudaStream_t stream) {
    return cudaStreamSynchronize(own(stream));
}

cudaError_t cudaStreamQuery_ptsz(cudaStream_t stream) {
    return cudaStreamQuery(own(stream));
}

cudaError_t cudaStreamGetFlags_ptsz(cudaStream_t stream, unsigned int* flags) {
    return cudaStreamGetFlags(own(stream), flags);
}

cudaError_t cudaStreamGetPriority_ptsz(cudaStream_t stream, int* priority) {
    return cudaStreamGetPriority(own(stream), priority);
}

cudaError_t cudaStreamGetId_ptsz(cudaStream_t stream, unsigned long long* id) {
    return cudaStreamGetId(own(stream), id);
}

cudaError_t cudaStreamGetDevice_ptsz(cudaStream_t stream, int* device) {
    return cudaStreamGetDevice(own(stream), device);
}

}  // extern "C"
