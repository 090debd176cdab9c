/// Faults over the stand-in: calls that fail, work that fails late, devices that are lost.

#include "kernels.hpp"
#include "standin_case.hpp"

#include <gmock/gmock.h>

namespace swaplab::sim {
namespace {

class StandinFaults : public StandinCase {
  protected:
    void SetUp() override {
        StandinCase::SetUp();
        if (!IsSkipped()) {
            ASSERT_CUDA(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
            ASSERT_CUDA(cudaMalloc(&memory_, bytes));
        }
    }
    cudaError_t fill() { return cudaMemsetAsync(memory_, 1, bytes, stream_); }
    static constexpr std::size_t bytes = 400;
    cudaStream_t stream_ = nullptr;
    void* memory_ = nullptr;
};

TEST_F(StandinFaults, TheNthCallOfItsSizeFailsOnceAndTheNextSucceeds) {
    standin()->arm({{.call = "cudaMalloc",
                     .ordinal = 2,
                     .bytes_min = 1000,
                     .code = cudaErrorMemoryAllocation}});
    void* pointer = nullptr;
    EXPECT_CUDA(cudaSuccess, cudaMalloc(&pointer, 1000));
    EXPECT_CUDA(cudaSuccess, cudaMalloc(&pointer, 999));
    EXPECT_CUDA(cudaErrorMemoryAllocation, cudaMalloc(&pointer, 1000));
    EXPECT_CUDA(cudaSuccess, cudaMalloc(&pointer, 1000));
}

TEST_F(StandinFaults, AFaultForGoodStrikesEveryCallFromThenOn) {
    standin()->arm(
        {{.call = "cudaMallocHost", .code = cudaErrorMemoryAllocation, .for_good = true}});
    void* pointer = nullptr;
    EXPECT_CUDA(cudaErrorMemoryAllocation, cudaMallocHost(&pointer, 1));
    EXPECT_CUDA(cudaErrorMemoryAllocation, cudaMallocHost(&pointer, 1));
    standin()->arm({});
    EXPECT_CUDA(cudaSuccess, cudaMallocHost(&pointer, 1));
}

TEST_F(StandinFaults, StickyCodesBreakTheDevice) {
    standin()->arm({{.call = "cudaMemsetAsync", .code = cudaErrorECCUncorrectable}});
    void* pointer = nullptr;
    EXPECT_CUDA(cudaErrorECCUncorrectable, fill());
    EXPECT_CUDA(cudaErrorECCUncorrectable, cudaMalloc(&pointer, 1));
    EXPECT_CUDA(cudaErrorECCUncorrectable, cudaStreamSynchronize(stream_));
    EXPECT_CUDA(cudaErrorECCUncorrectable, cudaSetDevice(0));
    EXPECT_CUDA(cudaErrorECCUncorrectable, cudaDeviceReset());
}

/// Those of which the documentation says that the process must be relaunched.
TEST_F(StandinFaults, ThirteenCodesAreStickyAndThoseOfCallsAreNot) {
    for (const int code : {226, 700, 702, 710, 714, 715, 716, 717, 718, 719, 721, 810, 911}) {
        begin({});
        void* pointer = nullptr;
        const auto sticky = static_cast<cudaError_t>(code);
        standin()->arm({{.call = "cudaMalloc", .code = code}});
        EXPECT_CUDA(sticky, cudaMalloc(&pointer, 1));
        EXPECT_CUDA(sticky, cudaGetLastError());
        EXPECT_CUDA(sticky, cudaMalloc(&pointer, 1));
        EXPECT_CUDA(sticky, cudaDeviceSynchronize());
    }
    for (const int code : {1, 2, 400, 600}) {
        begin({});
        void* pointer = nullptr;
        const auto passing = static_cast<cudaError_t>(code);
        standin()->arm({{.call = "cudaMalloc", .code = code}});
        EXPECT_CUDA(passing, cudaMalloc(&pointer, 1));
        EXPECT_CUDA(passing, cudaPeekAtLastError());
        EXPECT_CUDA(passing, cudaGetLastError());
        EXPECT_CUDA(cudaSuccess, cudaGetLastError());
        EXPECT_CUDA(cudaSuccess, cudaMalloc(&pointer, 1));
    }
}

TEST_F(StandinFaults, WorkThatFailsLateIsReportedByALaterCallWithItsOrigin) {
    const StandinFault fault{.call = "cudaMemsetAsync",
                             .ordinal = 2,
                             .code = cudaErrorLaunchFailure,
                             .action = FaultAction::late};
    standin()->arm({fault});
    standin()->announce("", {"engine.cpp", 7});
    EXPECT_CUDA(cudaSuccess, fill());
    EXPECT_CUDA(cudaSuccess, fill());
    EXPECT_CUDA(cudaErrorLaunchFailure, cudaStreamSynchronize(stream_));
    EXPECT_THAT(standin()->last_error_text(), ::testing::HasSubstr("engine.cpp:7"));
    EXPECT_CUDA(cudaErrorLaunchFailure, fill());
    EXPECT_CUDA(cudaErrorLaunchFailure, cudaDeviceSynchronize());
}

TEST_F(StandinFaults, HostFunctionsOfALostDeviceAreNotCalled) {
    standin()->arm({{.call = "cudaLaunchKernel",
                     .code = cudaErrorIllegalAddress,
                     .action = FaultAction::late}});
    bool called = false;
    launch_increment(static_cast<int*>(memory_), stream_);
    EXPECT_CUDA(cudaSuccess, cudaGetLastError());
    ASSERT_CUDA(cudaLaunchHostFunc(
        stream_, [](void* data) { *static_cast<bool*>(data) = true; }, &called));
    EXPECT_CUDA(cudaErrorIllegalAddress, cudaStreamSynchronize(stream_));
    EXPECT_FALSE(called);
}

TEST_F(StandinFaults, MemoryOfALostDeviceIsStillGivenBack) {
    standin()->arm({{.call = "cudaMemsetAsync", .action = FaultAction::late}});
    void* pinned = nullptr;
    ASSERT_CUDA(cudaMallocHost(&pinned, bytes));
    ASSERT_CUDA(fill());
    EXPECT_CUDA(cudaErrorLaunchFailure, cudaStreamSynchronize(stream_));
    EXPECT_CUDA(cudaErrorLaunchFailure, cudaFree(memory_));
    EXPECT_CUDA(cudaErrorLaunchFailure, cudaFreeHost(pinned));
    EXPECT_CUDA(cudaErrorLaunchFailure, cudaStreamDestroy(stream_));
    EXPECT_EQ(device().ledger().now(MemoryKind::device), 0U);
    EXPECT_EQ(device().ledger().now(MemoryKind::pinned), 0U);
}

TEST_F(StandinFaults, ALostDeviceLeavesTheOthersAlone) {
    begin({.device_count = 2, .faults = {{.call = "cudaMalloc", .code = cudaErrorLaunchFailure}}});
    void* pointer = nullptr;
    EXPECT_CUDA(cudaErrorLaunchFailure, cudaMalloc(&pointer, 1));
    ASSERT_CUDA(cudaSetDevice(1));
    EXPECT_CUDA(cudaSuccess, cudaMalloc(&pointer, 1));
}

}  // namespace
}  // namespace swaplab::sim
