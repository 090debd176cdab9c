/// Programs built with a default stream per thread, over the stand-in.

#define CUDA_API_PER_THREAD_DEFAULT_STREAM

#include "standin_case.hpp"

#include <gmock/gmock.h>

#include <thread>
#include <vector>

namespace swaplab::sim {
namespace {

class PerThreadStreams : public StandinCase {
  protected:
    static void* memory() {
        void* pointer = nullptr;
        EXPECT_CUDA(cudaSuccess, cudaMalloc(&pointer, bytes));
        return pointer;
    }
    static constexpr std::size_t bytes = 1000;
};

TEST_F(PerThreadStreams, DefaultStreamsOfTwoThreadsAreNotOrdered) {
    void* const pointer = memory();
    ASSERT_CUDA(cudaMemsetAsync(pointer, 1, bytes, nullptr));
    std::thread([=] {
        EXPECT_CUDA(cudaSuccess, cudaMemsetAsync(pointer, 2, bytes, nullptr));
    }).join();
    EXPECT_EQ(device().findings().size(), 1U);
}

TEST_F(PerThreadStreams, TheLegacyStreamIsStillOrderedWithThem) {
    void* const pointer = memory();
    ASSERT_CUDA(cudaMemset(pointer, 1, bytes));
    ASSERT_CUDA(cudaMemsetAsync(pointer, 1, bytes, cudaStreamLegacy));
    std::vector<char> found(bytes);
    ASSERT_CUDA(cudaMemcpy(found.data(), pointer, bytes, cudaMemcpyDeviceToHost));
    EXPECT_THAT(found, ::testing::Each('\1'));
    EXPECT_THAT(device().findings(), ::testing::IsEmpty());
}

TEST_F(PerThreadStreams, EveryCallOfAStreamTakesThem) {
    void* pointer = nullptr;
    cudaEvent_t event = nullptr;
    unsigned flags = 1;
    int priority = 1;
    int ordinal = -1;
    const auto nothing = [](void*) {};
    ASSERT_CUDA(cudaEventCreate(&event));
    EXPECT_CUDA(cudaSuccess, cudaMallocAsync(&pointer, bytes, nullptr));
    EXPECT_CUDA(cudaSuccess, cudaFreeAsync(pointer, nullptr));
    EXPECT_CUDA(cudaSuccess, cudaLaunchHostFunc(nullptr, nothing, nullptr));
    EXPECT_CUDA(cudaSuccess, cudaEventRecord(event, nullptr));
    EXPECT_CUDA(cudaSuccess, cudaStreamWaitEvent(nullptr, event, 0));
    EXPECT_CUDA(cudaErrorNotReady, cudaStreamQuery(nullptr));
    EXPECT_CUDA(cudaSuccess, cudaStreamSynchronize(nullptr));
    EXPECT_CUDA(cudaSuccess, cudaStreamGetFlags(nullptr, &flags));
    EXPECT_CUDA(cudaSuccess, cudaStreamGetPriority(nullptr, &priority));
    EXPECT_CUDA(cudaSuccess, cudaStreamGetDevice(nullptr, &ordinal));
    EXPECT_EQ(ordinal, 0);
    EXPECT_THAT(device().trace(),
                ::testing::Contains(::testing::Field(&TraceEvent::stream, "cudaStreamPerThread")));
}

}  // namespace
}  // namespace swaplab::sim
