/// Kernels over the stand-in: the launch ABI, twins and their findings.

#include "kernels.hpp"
#include "standin_case.hpp"

#include <gmock/gmock.h>

namespace swaplab::sim {
namespace {

class StandinLaunch : public StandinCase {
  protected:
    void SetUp() override {
        StandinCase::SetUp();
        if (!IsSkipped()) {
            ASSERT_CUDA(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
            ASSERT_CUDA(cudaMalloc(reinterpret_cast<void**>(&memory_), count * sizeof(float)));
            ASSERT_CUDA(cudaMemsetAsync(memory_, 0, count * sizeof(float), stream_));
        }
    }
    static constexpr int count = 5;
    cudaStream_t stream_ = nullptr;
    float* memory_ = nullptr;
};

TEST_F(StandinLaunch, AKernelWithoutATwinIsNamed) {
    launch_unregistered(reinterpret_cast<int*>(memory_), stream_);
    EXPECT_CUDA(cudaErrorInvalidDeviceFunction, cudaGetLastError());
    EXPECT_THAT(standin()->last_error_text(), ::testing::HasSubstr("unregistered"));
}

TEST_F(StandinLaunch, AKernelOnMemoryThatIsNoneFailsAsItRuns) {
    int local = 0;
    standin()->announce("", {"engine.cpp", 7});
    launch_increment(&local, stream_);
    EXPECT_CUDA(cudaSuccess, cudaGetLastError());
    EXPECT_CUDA(cudaErrorIllegalAddress, cudaStreamSynchronize(stream_));
    EXPECT_THAT(standin()->last_error_text(), ::testing::HasSubstr("engine.cpp:7"));
    EXPECT_EQ(local, 0);
    ASSERT_EQ(device().findings().size(), 1U);
    EXPECT_EQ(device().findings()[0].kind, FindingKind::host_pointer);
}

TEST_F(StandinLaunch, KernelsOnTwoStreamsWithoutAnEventAreARace) {
    cudaStream_t other = nullptr;
    ASSERT_CUDA(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
    ASSERT_CUDA(cudaStreamSynchronize(stream_));
    launch_scale(memory_, count, 2.0, stream_);
    launch_scale(memory_, count, 2.0, other);
    ASSERT_EQ(device().findings().size(), 1U);
    EXPECT_EQ(device().findings()[0].kind, FindingKind::race);
}

TEST_F(StandinLaunch, KernelsOnTwoStreamsWithAnEventAreNoRace) {
    cudaStream_t other = nullptr;
    cudaEvent_t event = nullptr;
    ASSERT_CUDA(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
    ASSERT_CUDA(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    launch_scale(memory_, count, 2.0, stream_);
    ASSERT_CUDA(cudaEventRecord(event, stream_));
    ASSERT_CUDA(cudaStreamWaitEvent(other, event, 0));
    launch_scale(memory_, count, 2.0, other);
    EXPECT_THAT(device().findings(), ::testing::IsEmpty());
}

}  // namespace
}  // namespace swaplab::sim
