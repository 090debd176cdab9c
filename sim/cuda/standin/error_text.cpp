/// Names and texts of error codes.

#include <cuda_runtime_api.h>

namespace {

struct Row {
    cudaError_t code;
    const char* name;
};

#define SWAPLAB_ROW(name) \
    Row {                 \
        name, #name       \
    }
constexpr Row rows[] = {
    SWAPLAB_ROW(cudaSuccess),
    SWAPLAB_ROW(cudaErrorInvalidValue),
    SWAPLAB_ROW(cudaErrorMemoryAllocation),
    SWAPLAB_ROW(cudaErrorInitializationError),
    SWAPLAB_ROW(cudaErrorCudartUnloading),
    SWAPLAB_ROW(cudaErrorProfilerDisabled),
    SWAPLAB_ROW(cudaErrorProfilerNotInitialized),
    SWAPLAB_ROW(cudaErrorProfilerAlreadyStarted),
    SWAPLAB_ROW(cudaErrorProfilerAlreadyStopped),
    SWAPLAB_ROW(cudaErrorInvalidConfiguration),
    SWAPLAB_ROW(cudaErrorInvalidPitchValue),
    SWAPLAB_ROW(cudaErrorInvalidSymbol),
    SWAPLAB_ROW(cudaErrorInvalidHostPointer),
    SWAPLAB_ROW(cudaErrorInvalidDevicePointer),
    SWAPLAB_ROW(cudaErrorInvalidTexture),
    SWAPLAB_ROW(cudaErrorInvalidTextureBinding),
    SWAPLAB_ROW(cudaErrorInvalidChannelDescriptor),
    SWAPLAB_ROW(cudaErrorInvalidMemcpyDirection),
    SWAPLAB_ROW(cudaErrorAddressOfConstant),
    SWAPLAB_ROW(cudaErrorTextureFetchFailed),
    SWAPLAB_ROW(cudaErrorTextureNotBound),
    SWAPLAB_ROW(cudaErrorSynchronizationError),
    SWAPLAB_ROW(cudaErrorInvalidFilterSetting),
    SWAPLAB_ROW(cudaErrorInvalidNormSetting),
    SWAPLAB_ROW(cudaErrorMixedDeviceExecution),
    SWAPLAB_ROW(cudaErrorNotYetImplemented),
    SWAPLAB_ROW(cudaErrorMemoryValueTooLarge),
    SWAPLAB_ROW(cudaErrorStubLibrary),
    SWAPLAB_ROW(cudaErrorInsufficientDriver),
    SWAPLAB_ROW(cudaErrorCallRequiresNewerDriver),
    SWAPLAB_ROW(cudaErrorInvalidSurface),
    SWAPLAB_ROW(cudaErrorDuplicateVariableName),
    SWAPLAB_ROW(cudaErrorDuplicateTextureName),
    SWAPLAB_ROW(cudaErrorDuplicateSurfaceName),
    SWAPLAB_ROW(cudaErrorDevicesUnavailable),
    SWAPLAB_ROW(cudaErrorIncompatibleDriverContext),
    SWAPLAB_ROW(cudaErrorMissingConfiguration),
    SWAPLAB_ROW(cudaErrorPriorLaunchFailure),
    SWAPLAB_ROW(cudaErrorLaunchMaxDepthExceeded),
    SWAPLAB_ROW(cudaErrorLaunchFileScopedTex),
    SWAPLAB_ROW(cudaErrorLaunchFileScopedSurf),
    SWAPLAB_ROW(cudaErrorSyncDepthExceeded),
    SWAPLAB_ROW(cudaErrorLaunchPendingCountExceeded),
    SWAPLAB_ROW(cudaErrorInvalidDeviceFunction),
    SWAPLAB_ROW(cudaErrorNoDevice),
    SWAPLAB_ROW(cudaErrorInvalidDevice),
    SWAPLAB_ROW(cudaErrorDeviceNotLicensed),
    SWAPLAB_ROW(cudaErrorSoftwareValidityNotEstablished),
    SWAPLAB_ROW(cudaErrorStartupFailure),
    SWAPLAB_ROW(cudaErrorInvalidKernelImage),
    SWAPLAB_ROW(cudaErrorDeviceUninitialized),
    SWAPLAB_ROW(cudaErrorMapBufferObjectFailed),
    SWAPLAB_ROW(cudaErrorUnmapBufferObjectFailed),
    SWAPLAB_ROW(cudaErrorArrayIsMapped),
    SWAPLAB_ROW(cudaErrorAlreadyMapped),
    SWAPLAB_ROW(cudaErrorNoKernelImageForDevice),
    SWAPLAB_ROW(cudaErrorAlreadyAcquired),
    SWAPLAB_ROW(cudaErrorNotMapped),
    SWAPLAB_ROW(cudaErrorNotMappedAsArray),
    SWAPLAB_ROW(cudaErrorNotMappedAsPointer),
    SWAPLAB_ROW(cudaErrorECCUncorrectable),
    SWAPLAB_ROW(cudaErrorUnsupportedLimit),
    SWAPLAB_ROW(cudaErrorDeviceAlreadyInUse),
    SWAPLAB_ROW(cudaErrorPeerAccessUnsupported),
    SWAPLAB_ROW(cudaErrorInvalidPtx),
    SWAPLAB_ROW(cudaErrorInvalidGraphicsContext),
    SWAPLAB_ROW(cudaErrorNvlinkUncorrectable),
    SWAPLAB_ROW(cudaErrorJitCompilerNotFound),
    SWAPLAB_ROW(cudaErrorUnsupportedPtxVersion),
    SWAPLAB_ROW(cudaErrorJitCompilationDisabled),
    SWAPLAB_ROW(cudaErrorUnsupportedExecAffinity),
    SWAPLAB_ROW(cudaErrorUnsupportedDevSideSync),
    SWAPLAB_ROW(cudaErrorContained),
    SWAPLAB_ROW(cudaErrorInvalidSource),
    SWAPLAB_ROW(cudaErrorFileNotFound),
    SWAPLAB_ROW(cudaErrorSharedObjectSymbolNotFound),
    SWAPLAB_ROW(cudaErrorSharedObjectInitFailed),
    SWAPLAB_ROW(cudaErrorOperatingSystem),
    SWAPLAB_ROW(cudaErrorInvalidResourceHandle),
    SWAPLAB_ROW(cudaErrorIllegalState),
    SWAPLAB_ROW(cudaErrorLossyQuery),
    SWAPLAB_ROW(cudaErrorSymbolNotFound),
    SWAPLAB_ROW(cudaErrorNotReady),
    SWAPLAB_ROW(cudaErrorIllegalAddress),
    SWAPLAB_ROW(cudaErrorLaunchOutOfResources),
    SWAPLAB_ROW(cudaErrorLaunchTimeout),
    SWAPLAB_ROW(cudaErrorLaunchIncompatibleTexturing),
    SWAPLAB_ROW(cudaErrorPeerAccessAlreadyEnabled),
    SWAPLAB_ROW(cudaErrorPeerAccessNotEnabled),
    SWAPLAB_ROW(cudaErrorSetOnActiveProcess),
    SWAPLAB_ROW(cudaErrorContextIsDestroyed),
    SWAPLAB_ROW(cudaErrorAssert),
    SWAPLAB_ROW(cudaErrorTooManyPeers),
    SWAPLAB_ROW(cudaErrorHostMemoryAlreadyRegistered),
    SWAPLAB_ROW(cudaErrorHostMemoryNotRegistered),
    SWAPLAB_ROW(cudaErrorHardwareStackError),
    SWAPLAB_ROW(cudaErrorIllegalInstruction),
    SWAPLAB_ROW(cudaErrorMisalignedAddress),
    SWAPLAB_ROW(cudaErrorInvalidAddressSpace),
    SWAPLAB_ROW(cudaErrorInvalidPc),
    SWAPLAB_ROW(cudaErrorLaunchFailure),
    SWAPLAB_ROW(cudaErrorCooperativeLaunchTooLarge),
    SWAPLAB_ROW(cudaErrorTensorMemoryLeak),
    SWAPLAB_ROW(cudaErrorNotPermitted),
    SWAPLAB_ROW(cudaErrorNotSupported),
    SWAPLAB_ROW(cudaErrorSystemNotReady),
    SWAPLAB_ROW(cudaErrorSystemDriverMismatch),
    SWAPLAB_ROW(cudaErrorCompatNotSupportedOnDevice),
    SWAPLAB_ROW(cudaErrorMpsConnectionFailed),
    SWAPLAB_ROW(cudaErrorMpsRpcFailure),
    SWAPLAB_ROW(cudaErrorMpsServerNotReady),
    SWAPLAB_ROW(cudaErrorMpsMaxClientsReached),
    SWAPLAB_ROW(cudaErrorMpsMaxConnectionsReached),
    SWAPLAB_ROW(cudaErrorMpsClientTerminated),
    SWAPLAB_ROW(cudaErrorCdpNotSupported),
    SWAPLAB_ROW(cudaErrorCdpVersionMismatch),
    SWAPLAB_ROW(cudaErrorStreamCaptureUnsupported),
    SWAPLAB_ROW(cudaErrorStreamCaptureInvalidated),
    SWAPLAB_ROW(cudaErrorStreamCaptureMerge),
    SWAPLAB_ROW(cudaErrorStreamCaptureUnmatched),
    SWAPLAB_ROW(cudaErrorStreamCaptureUnjoined),
    SWAPLAB_ROW(cudaErrorStreamCaptureIsolation),
    SWAPLAB_ROW(cudaErrorStreamCaptureImplicit),
    SWAPLAB_ROW(cudaErrorCapturedEvent),
    SWAPLAB_ROW(cudaErrorStreamCaptureWrongThread),
    SWAPLAB_ROW(cudaErrorTimeout),
    SWAPLAB_ROW(cudaErrorGraphExecUpdateFailure),
    SWAPLAB_ROW(cudaErrorExternalDevice),
    SWAPLAB_ROW(cudaErrorInvalidClusterSize),
    SWAPLAB_ROW(cudaErrorFunctionNotLoaded),
    SWAPLAB_ROW(cudaErrorInvalidResourceType),
    SWAPLAB_ROW(cudaErrorInvalidResourceConfiguration),
    SWAPLAB_ROW(cudaErrorUnknown),
};
#undef SWAPLAB_ROW

}  // namespace

extern "C" const char* cudaGetErrorName(cudaError_t error) {
    for (const Row& row : rows) {
        if (row.code == error) {
            return row.name;
        }
    }
    return "unrecognized error code";
}

// In words for what the stand-in itself answers; of all else it is told by fault plans, and says
// the name.
extern "C" const char* cudaGetErrorString(cudaError_t error) {
    switch (error) {
        case cudaSuccess:
            return "no error";
        case cudaErrorInvalidValue:
            return "invalid argument";
        case cudaErrorMemoryAllocation:
            return "out of memory";
        case cudaErrorInitializationError:
            return "initialization error";
        case cudaErrorInvalidConfiguration:
            return "invalid configuration argument";
        case cudaErrorInvalidSymbol:
            return "invalid device symbol";
        case cudaErrorInvalidMemcpyDirection:
            return "invalid copy direction for memcpy";
        case cudaErrorInsufficientDriver:
            return "CUDA driver version is insufficient for CUDA runtime version";
        case cudaErrorMissingConfiguration:
            return "__global__ function call is not configured";
        case cudaErrorInvalidDeviceFunction:
            return "invalid device function";
        case cudaErrorNoDevice:
            return "no CUDA-capable device is detected";
        case cudaErrorInvalidDevice:
            return "invalid device ordinal";
        case cudaErrorECCUncorrectable:
            return "uncorrectable ECC error encountered";
        case cudaErrorInvalidResourceHandle:
            return "invalid resource handle";
        case cudaErrorNotReady:
            return "device not ready";
        case cudaErrorIllegalAddress:
            return "an illegal memory access was encountered";
        case cudaErrorHostMemoryAlreadyRegistered:
            return "part or all of the requested memory range is already mapped";
        case cudaErrorHostMemoryNotRegistered:
            return "pointer does not correspond to a registered memory region";
        case cudaErrorLaunchFailure:
            return "unspecified launch failure";
        case cudaErrorNotPermitted:
            return "operation not permitted";
        case cudaErrorNotSupported:
            return "operation not supported";
        case cudaErrorUnknown:
            return "unknown error";
        default:
            return cudaGetErrorName(error);
    }
}
