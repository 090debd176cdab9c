/// Devices: which there are, what they can, and when they are done.

#include "cuda/standin/runtime.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace swaplab::sim {
namespace {

/// What the device answers to be, in round figures of one that the kernels are built for.
constexpr std::pair<cudaDeviceAttr, int> attributes[] = {
    {cudaDevAttrMaxThreadsPerBlock, 1024},
    {cudaDevAttrMaxBlockDimX, 1024},
    {cudaDevAttrMaxBlockDimY, 1024},
    {cudaDevAttrMaxBlockDimZ, 64},
    {cudaDevAttrMaxGridDimX, 2147483647},
    {cudaDevAttrMaxGridDimY, 65535},
    {cudaDevAttrMaxGridDimZ, 65535},
    {cudaDevAttrMaxSharedMemoryPerBlock, 49152},
    {cudaDevAttrMaxSharedMemoryPerMultiprocessor, 233472},
    {cudaDevAttrMaxRegistersPerBlock, 65536},
    {cudaDevAttrWarpSize, 32},
    {cudaDevAttrMultiProcessorCount, 132},
    {cudaDevAttrMaxThreadsPerMultiProcessor, 2048},
    {cudaDevAttrMaxBlocksPerMultiprocessor, 32},
    {cudaDevAttrComputeCapabilityMajor, 9},
    {cudaDevAttrComputeCapabilityMinor, 0},
    {cudaDevAttrAsyncEngineCount, 3},
    {cudaDevAttrConcurrentKernels, 1},
    {cudaDevAttrUnifiedAddressing, 1},
    {cudaDevAttrStreamPrioritiesSupported, 1},
    {cudaDevAttrMemoryPoolsSupported, 1},
    {cudaDevAttrEccEnabled, 1},
    {cudaDevAttrIntegrated, 0},
    {cudaDevAttrManagedMemory, 0},
    {cudaDevAttrPageableMemoryAccess, 0},
    {cudaDevAttrCooperativeLaunch, 0},
    {cudaDevAttrL2CacheSize, 52428800},
    {cudaDevAttrPciDomainId, 0},
    {cudaDevAttrPciDeviceId, 0},
};

int attribute(cudaDeviceAttr wanted, int ordinal) {
    if (wanted == cudaDevAttrPciBusId) {
        return ordinal + 1;
    }
    const auto* found = std::find_if(std::begin(attributes), std::end(attributes),
                                     [&](const auto& entry) { return entry.first == wanted; });
    require(found != std::end(attributes), cudaErrorNotSupported,
            "the stand-in does not know this attribute");
    return found->second;
}

cudaDeviceProp properties_of(int ordinal, std::uint64_t total_bytes) {
    cudaDeviceProp result{};
    const auto get = [&](cudaDeviceAttr wanted) { return attribute(wanted, ordinal); };
    const std::string name = "swaplab stand-in";
    std::copy(name.begin(), name.end(), std::begin(result.name));
    std::memcpy(result.uuid.bytes, name.data(), sizeof(result.uuid.bytes) - 1);
    result.uuid.bytes[sizeof(result.uuid.bytes) - 1] = static_cast<char>(ordinal);
    result.totalGlobalMem = total_bytes;
    result.sharedMemPerBlock = static_cast<std::size_t>(get(cudaDevAttrMaxSharedMemoryPerBlock));
    result.regsPerBlock = get(cudaDevAttrMaxRegistersPerBlock);
    result.warpSize = get(cudaDevAttrWarpSize);
    result.maxThreadsPerBlock = get(cudaDevAttrMaxThreadsPerBlock);
    result.maxThreadsDim[0] = get(cudaDevAttrMaxBlockDimX);
    result.maxThreadsDim[1] = get(cudaDevAttrMaxBlockDimY);
    result.maxThreadsDim[2] = get(cudaDevAttrMaxBlockDimZ);
    result.maxGridSize[0] = get(cudaDevAttrMaxGridDimX);
    result.maxGridSize[1] = get(cudaDevAttrMaxGridDimY);
    result.maxGridSize[2] = get(cudaDevAttrMaxGridDimZ);
    result.major = get(cudaDevAttrComputeCapabilityMajor);
    result.minor = get(cudaDevAttrComputeCapabilityMinor);
    result.multiProcessorCount = get(cudaDevAttrMultiProcessorCount);
    result.maxThreadsPerMultiProcessor = get(cudaDevAttrMaxThreadsPerMultiProcessor);
    result.maxBlocksPerMultiProcessor = get(cudaDevAttrMaxBlocksPerMultiprocessor);
    result.concurrentKernels = get(cudaDevAttrConcurrentKernels);
    result.ECCEnabled = get(cudaDevAttrEccEnabled);
    result.pciBusID = get(cudaDevAttrPciBusId);
    result.asyncEngineCount = get(cudaDevAttrAsyncEngineCount);
    result.unifiedAddressing = get(cudaDevAttrUnifiedAddressing);
    result.streamPrioritiesSupported = get(cudaDevAttrStreamPrioritiesSupported);
    result.memoryPoolsSupported = get(cudaDevAttrMemoryPoolsSupported);
    result.l2CacheSize = get(cudaDevAttrL2CacheSize);
    return result;
}

}  // namespace
}  // namespace swaplab::sim

using namespace swaplab::sim;

extern "C" {

// The one question that has an answer without a driver.
cudaError_t cudaDriverGetVersion(int* version) {
    if (version == nullptr) {
        return Runtime::instance().fail(
            std::make_exception_ptr(Failure(cudaErrorInvalidValue, "no place for the version")),
            nullptr);
    }
    *version = Runtime::instance().options().driver_version;
    return cudaSuccess;
}

cudaError_t cudaGetDeviceCount(int* count) {
    return host_call([&](const Runtime& runtime) {
        require(count != nullptr, cudaErrorInvalidValue, "no place for the count");
        *count = runtime.options().device_count;
        require(*count > 0, cudaErrorNoDevice, "there is no device");
    });
}

cudaError_t cudaGetDevice(int* device) {
    return host_call([&](const Runtime&) {
        require(device != nullptr, cudaErrorInvalidValue, "no place for the device");
        *device = Runtime::thread().device;
    });
}

cudaError_t cudaSetDevice(int device) {
    return host_call([&](Runtime& runtime) {
        runtime.gpu(device).check();
        Runtime::thread().device = device;
    });
}

cudaError_t cudaInitDevice(int device, unsigned int, unsigned int flags) {
    return host_call([&](Runtime& runtime) {
        require(flags <= cudaInitDeviceFlagsAreValid, cudaErrorInvalidValue, "unknown flags");
        runtime.gpu(device).check();
    });
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
    return host_call([&](const Runtime& runtime) {
        require(properties != nullptr, cudaErrorInvalidValue, "no place for the properties");
        runtime.check_ordinal(device);
        *properties = properties_of(device, runtime.options().device.capacity_bytes);
    });
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attr, int device) {
    return host_call([&](const Runtime& runtime) {
        require(value != nullptr, cudaErrorInvalidValue, "no place for the value");
        require(attr > 0 && attr < cudaDevAttrMax, cudaErrorInvalidValue, "no such attribute");
        runtime.check_ordinal(device);
        *value = attribute(attr, device);
    });
}

cudaError_t cudaDeviceGetPCIBusId(char* name, int length, int device) {
    return host_call([&](const Runtime& runtime) {
        require(name != nullptr && length > 0, cudaErrorInvalidValue, "no place for the name");
        runtime.check_ordinal(device);
        const std::string text = fmt::format("0000:{:02X}:00.0", device + 1);
        require(text.size() < static_cast<std::size_t>(length), cudaErrorInvalidValue,
                "the name does not fit");
        std::copy(text.c_str(), text.c_str() + text.size() + 1, name);
    });
}

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
    return device_call({"cudaDeviceGetStreamPriorityRange"}, [&](const Runtime&, const Gpu&) {
        if (least != nullptr) {
            *least = stream_priority_least;
        }
        if (greatest != nullptr) {
            *greatest = stream_priority_greatest;
        }
    });
}

cudaError_t cudaDeviceSynchronize() {
    const CallInfo call{"cudaDeviceSynchronize"};
    return device_call(
        call, [&](Runtime& runtime, Gpu& gpu) { runtime.synchronize(gpu, site_of(call)); });
}

cudaError_t cudaDeviceReset() {
    return device_call({"cudaDeviceReset"},
                       [](Runtime& runtime, const Gpu& gpu) { runtime.reset(gpu.ordinal()); });
}

}  // extern "C"
