#include "cuda/cuda_error.hpp"

#include "swaplab/sim/cuda/standin.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace swaplab::sim {
namespace {

enum class Cause : std::uint8_t {
    call,      ///< this call alone fails
    kernel,    ///< a kernel broke the device
    hardware,  ///< something else did
};

struct Meaning {
    cudaError_t code;
    Cause cause;
    const char* advice;
};

constexpr const char* find_kernel =
    "the kernel touches what it must not: run the program under compute-sanitizer; then start the "
    "process anew";
constexpr const char* check_hardware =
    "the GPU is at fault: look for Xid messages in the kernel log and at nvidia-smi -q -d ECC, "
    "reset or exchange it, and start the process anew";

constexpr Meaning meanings[] = {
    {cudaErrorMemoryAllocation, Cause::call,
     "use smaller buckets or fewer slots, or end other processes on this GPU"},
    {cudaErrorInitializationError, Cause::call,
     "a process that used CUDA before it was forked cannot go on using it: start ranks by exec"},
    {cudaErrorCudartUnloading, Cause::call, "release the device before the process ends"},
    {cudaErrorInsufficientDriver, Cause::call,
     "no driver, or one too old for CUDA 13: install NVIDIA driver 580 or later"},
    {cudaErrorDevicesUnavailable, Cause::call,
     "another process has this GPU to itself: see its compute mode in nvidia-smi"},
    {cudaErrorNoDevice, Cause::call,
     "no GPU is visible: see nvidia-smi -L and CUDA_VISIBLE_DEVICES"},
    {cudaErrorInvalidDevice, Cause::call,
     "no GPU has that number: see nvidia-smi -L and CUDA_VISIBLE_DEVICES"},
    {cudaErrorNoKernelImageForDevice, Cause::call,
     "build for this GPU: -DCMAKE_CUDA_ARCHITECTURES=MAJOR_MINOR, without the dot"},
    {cudaErrorInvalidDeviceFunction, Cause::call,
     "build for this GPU: -DCMAKE_CUDA_ARCHITECTURES=MAJOR_MINOR, without the dot"},
    {cudaErrorSystemNotReady, Cause::call,
     "wait for, or start, the fabric manager of this machine"},
    {cudaErrorSystemDriverMismatch, Cause::call,
     "driver and its libraries differ in version: restart after the update"},
    {cudaErrorCompatNotSupportedOnDevice, Cause::call,
     "the compatibility libraries do not work with this GPU: install a newer driver"},
    {cudaErrorIllegalAddress, Cause::kernel, find_kernel},
    {cudaErrorLaunchTimeout, Cause::kernel,
     "the kernel ran too long for a GPU with a display: use another; start the process anew"},
    {cudaErrorAssert, Cause::kernel, "an assertion in a kernel failed: start the process anew"},
    {cudaErrorHardwareStackError, Cause::kernel, find_kernel},
    {cudaErrorIllegalInstruction, Cause::kernel, find_kernel},
    {cudaErrorMisalignedAddress, Cause::kernel, find_kernel},
    {cudaErrorInvalidAddressSpace, Cause::kernel, find_kernel},
    {cudaErrorInvalidPc, Cause::kernel, find_kernel},
    {cudaErrorLaunchFailure, Cause::kernel, find_kernel},
    {cudaErrorTensorMemoryLeak, Cause::kernel, find_kernel},
    {cudaErrorECCUncorrectable, Cause::hardware, check_hardware},
    {cudaErrorNvlinkUncorrectable, Cause::hardware, check_hardware},
    {cudaErrorContained, Cause::hardware, check_hardware},
    {cudaErrorExternalDevice, Cause::hardware, check_hardware},
    {cudaErrorUnknown, Cause::hardware, check_hardware},
    {cudaErrorMpsClientTerminated, Cause::hardware,
     "the MPS server ended this process's work: see its log, and start the process anew"},
    {cudaErrorContextIsDestroyed, Cause::hardware,
     "somebody reset the device (cudaDeviceReset): start the process anew"},
};

const Meaning* find(cudaError_t code) noexcept {
    const auto* found = std::find_if(std::begin(meanings), std::end(meanings),
                                     [&](const Meaning& each) { return each.code == code; });
    return found == std::end(meanings) ? nullptr : found;
}

}  // namespace

bool loses_device(cudaError_t code) noexcept {
    const Meaning* meaning = find(code);
    return meaning != nullptr && meaning->cause != Cause::call;
}

bool is_kernel_failure(cudaError_t code) noexcept {
    const Meaning* meaning = find(code);
    return meaning != nullptr && meaning->cause == Cause::kernel;
}

std::string advice(cudaError_t code) {
    const Meaning* meaning = find(code);
    return meaning != nullptr ? meaning->advice
                              : "see this code in the documentation of the CUDA runtime";
}

std::string describe(cudaError_t code) {
    std::string text = fmt::format("{} ({}): {}", cudaGetErrorName(code), static_cast<int>(code),
                                   cudaGetErrorString(code));
    if (const Standin* found = standin(); found != nullptr && !found->last_error_text().empty()) {
        text += "; " + found->last_error_text();
    }
    return text;
}

}  // namespace swaplab::sim
