/// Kernels: the launch of one, and the hidden calls that nvcc makes for it.

#include "cuda/standin/runtime.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>

using namespace swaplab::sim;

namespace {

constexpr unsigned block_threads_max = 1024;
constexpr unsigned block_depth_max = 64;
constexpr unsigned grid_height_max = 65535;
constexpr unsigned grid_width_max = 2147483647;
constexpr std::size_t shared_bytes_max = 232448;

bool is_possible(const LaunchShape& shape) {
    const dim3& block = shape.block;
    const dim3& grid = shape.grid;
    const std::uint64_t threads = std::uint64_t{block.x} * block.y * block.z;
    return threads >= 1 && threads <= block_threads_max && block.x <= block_threads_max &&
           block.y <= block_threads_max && block.z <= block_depth_max && grid.x >= 1 &&
           grid.x <= grid_width_max && grid.y >= 1 && grid.y <= grid_height_max && grid.z >= 1 &&
           grid.z <= grid_height_max && shape.shared_bytes <= shared_bytes_max;
}

cudaError_t launch(const void* stub, const LaunchShape& shape, void** arguments) {
    const CallInfo call{"cudaLaunchKernel"};
    return stream_call(call, shape.stream, [&](Runtime& runtime, StreamEntry& entry) {
        require(is_possible(shape), cudaErrorInvalidConfiguration,
                "grid, block or shared memory are empty or too large");
        require(entry.gpu->ordinal() == Runtime::thread().device, cudaErrorInvalidResourceHandle,
                "the stream is not of the current device");
        Kernel kernel = runtime.twin(stub).make(arguments);
        try {
            entry.gpu->device().launch(std::move(kernel), entry.ref, site_of(call));
            entry.note_issue();
        } catch (const ArgumentError& wrong) {  // a GPU finds that when the kernel runs
            entry.gpu->fail_late(call, site_of(call), entry, cudaErrorIllegalAddress, wrong.what());
        }
    });
}

cudaError_t occupancy(int* blocks, const void* stub, int block_threads) {
    return host_call([&](const Runtime& runtime) {
        constexpr int threads_max = 2048;
        constexpr int blocks_max = 32;
        require(blocks != nullptr && block_threads >= 1, cudaErrorInvalidValue,
                "no place for the blocks, or no threads");
        runtime.check_kernel(stub);
        *blocks = block_threads > static_cast<int>(block_threads_max)
                      ? 0
                      : std::min(blocks_max, threads_max / block_threads);
    });
}

/// What a module is known by: one word that nobody reads.
void* module_handle = nullptr;

}  // namespace

extern "C" {

cudaError_t cudaLaunchKernel(const void* stub, dim3 grid, dim3 block, void** arguments,
                             size_t shared_bytes, cudaStream_t stream) {
    return launch(stub, {grid, block, shared_bytes, stream}, arguments);
}

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* stub,
                                void** arguments) {
    if (config == nullptr) {
        return host_call([](const Runtime&) {
            throw Failure(cudaErrorInvalidValue, "no launch configuration");
        });
    }
    return launch(stub,
                  {config->gridDim, config->blockDim, config->dynamicSmemBytes, config->stream},
                  arguments);
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* data) {
    const CallInfo call{"cudaLaunchHostFunc"};
    return stream_call(call, stream, [&](Runtime&, StreamEntry& entry) {
        require(function != nullptr, cudaErrorInvalidValue, "no function");
        const auto body = [=] {
            ThreadState& state = Runtime::thread();
            state.in_host_function = true;
            function(data);
            state.in_host_function = false;
        };
        entry.gpu->device().call_host({call.name, {}, {}, body}, entry.ref, site_of(call));
        entry.note_issue();
    });
}

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void* stub) {
    return host_call([&](const Runtime& runtime) {
        require(attributes != nullptr, cudaErrorInvalidValue, "no place for the attributes");
        runtime.check_kernel(stub);
        *attributes = {};
        attributes->maxThreadsPerBlock = static_cast<int>(block_threads_max);
        attributes->binaryVersion = 90;
        attributes->ptxVersion = 90;
    });
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void* stub,
                                                          int block_threads, size_t) {
    return occupancy(blocks, stub, block_threads);
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, const void* stub,
                                                                   int block_threads, size_t,
                                                                   unsigned int) {
    return occupancy(blocks, stub, block_threads);
}

// As nvcc 13 has them called. A kernel's handle is the address of its stub, and a module's contents
// do not matter: no device code is run.

void** __cudaRegisterFatBinary(void*) {
    return &module_handle;
}

void __cudaRegisterFatBinaryEnd(void**) {}

void __cudaUnregisterFatBinary(void**) {}

char __cudaInitModule(void**) {
    return 1;
}

void __cudaRegisterFunction(void**, const char* stub, char*, const char* name, int, uint3*, uint3*,
                            dim3*, dim3*, int*) {
    Runtime::instance().name_kernel(stub, name);
}

void __cudaRegisterVar(void**, char*, char*, const char*, int, size_t, int, int) {}

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared_bytes, void* stream) {
    Runtime::thread().launches.push_back(
        {grid, block, shared_bytes, static_cast<cudaStream_t>(stream)});
    return 0;
}

cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, size_t* shared_bytes,
                                       void* stream) {
    std::vector<LaunchShape>& launches = Runtime::thread().launches;
    if (launches.empty()) {
        return host_call([](const Runtime&) {
            throw Failure(cudaErrorMissingConfiguration, "a kernel was called without <<<>>>");
        });
    }
    const LaunchShape& shape = launches.back();
    *grid = shape.grid;
    *block = shape.block;
    *shared_bytes = shape.shared_bytes;
    *static_cast<cudaStream_t*>(stream) = shape.stream;
    launches.pop_back();
    return cudaSuccess;
}

cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* stub) {
    *kernel = static_cast<cudaKernel_t>(const_cast<void*>(stub));
    return cudaSuccess;
}

cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments,
                               size_t shared_bytes, cudaStream_t stream) {
    return launch(kernel, {grid, block, shared_bytes, stream}, arguments);
}

}  // extern "C"
