/// Which CUDA this stands in for.

#include <cuda_runtime_api.h>

extern "C" cudaError_t cudaRuntimeGetVersion(int* version) {
    if (version == nullptr) {
        return cudaErrorInvalidValue;
    }
    *version = CUDART_VERSION;
    return cudaSuccess;
}
