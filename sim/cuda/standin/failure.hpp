#pragma once

/// How a call of the stand-in fails, inside it.

#include <cuda_runtime_api.h>
#include <stdexcept>
#include <string>

namespace swaplab::sim {

/// Becomes the return value of the call, and the last error of the thread.
class Failure : public std::runtime_error {
  public:
    Failure(cudaError_t code, const std::string& text) : std::runtime_error(text), code_(code) {}
    [[nodiscard]] cudaError_t code() const noexcept { return code_; }

  private:
    cudaError_t code_;
};

/// Throws a Failure unless `holds`.
inline void require(bool holds, cudaError_t code, const char* text) {
    if (!holds) {
        throw Failure(code, text);
    }
}

/// Whether the process must be started anew after `code`, as the CUDA headers say, or the hardware
/// is at fault.
[[nodiscard]] constexpr bool is_sticky(cudaError_t code) noexcept {
    switch (code) {
        case cudaErrorContained:
        case cudaErrorECCUncorrectable:
        case cudaErrorNvlinkUncorrectable:
        case cudaErrorIllegalAddress:
        case cudaErrorLaunchTimeout:
        case cudaErrorAssert:
        case cudaErrorHardwareStackError:
        case cudaErrorIllegalInstruction:
        case cudaErrorMisalignedAddress:
        case cudaErrorInvalidAddressSpace:
        case cudaErrorInvalidPc:
        case cudaErrorLaunchFailure:
        case cudaErrorTensorMemoryLeak:
        case cudaErrorMpsClientTerminated:
        case cudaErrorExternalDevice:
            return true;
        default:
            return false;
    }
}

}  // namespace swaplab::sim
