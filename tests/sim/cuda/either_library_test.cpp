/// What holds over either library: the stand-in, and the real one on a GPU.

#include "kernels.hpp"
#include "standin_case.hpp"

#include <gmock/gmock.h>

#include <cstdlib>
#include <vector>

namespace swaplab::sim {
namespace {

class EitherLibrary : public ::testing::Test {
  protected:
    void SetUp() override {
        if (standin() != nullptr) {
            standin()->configure({});
        }
        const cudaError_t usable = cudaSetDevice(0);
        if (usable != cudaSuccess) {
            ASSERT_EQ(standin(), nullptr);
            GTEST_SKIP() << cudaGetErrorString(usable);
        }
        ASSERT_CUDA(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
        ASSERT_CUDA(cudaMalloc(&memory_, count * sizeof(float)));
        ASSERT_CUDA(cudaMemsetAsync(memory_, 0, count * sizeof(float), stream_));
    }
    void TearDown() override {
        if (memory_ != nullptr) {
            EXPECT_CUDA(cudaSuccess, cudaFree(memory_));
            EXPECT_CUDA(cudaSuccess, cudaStreamDestroy(stream_));
        }
    }
    template <class T>
    std::vector<T> values() {
        std::vector<T> found(count);
        EXPECT_CUDA(cudaSuccess, cudaMemcpyAsync(found.data(), memory_, count * sizeof(T),
                                                 cudaMemcpyDeviceToHost, stream_));
        EXPECT_CUDA(cudaSuccess, cudaStreamSynchronize(stream_));
        return found;
    }
    static constexpr int count = 500;
    cudaStream_t stream_ = nullptr;
    void* memory_ = nullptr;
};

TEST_F(EitherLibrary, AKernelRuns) {
    launch_scale(static_cast<float*>(memory_), count, 2.0, stream_);
    launch_scale(static_cast<float*>(memory_), count, 2.0, stream_);
    EXPECT_CUDA(cudaSuccess, cudaGetLastError());
    EXPECT_THAT(values<float>(), ::testing::Each(3.0F));
}

TEST_F(EitherLibrary, AKernelOfAnExtendedLaunchRuns) {
    EXPECT_CUDA(cudaSuccess, launch_scale_ex(static_cast<float*>(memory_), count, 2.0, stream_));
    EXPECT_THAT(values<float>(), ::testing::Each(1.0F));
}

TEST_F(EitherLibrary, AKernelTemplateRuns) {
    launch_increment(static_cast<int*>(memory_), stream_);
    EXPECT_EQ(values<int>().front(), 1);
}

TEST_F(EitherLibrary, AnEmptyOrTooLargeBlockIsAnInvalidConfiguration) {
    for (const unsigned threads : {0U, 1025U}) {
        launch_with_threads(threads, stream_);
        EXPECT_CUDA(cudaErrorInvalidConfiguration, cudaGetLastError());
    }
}

// The entry of ctest that runs over the real library says so by the environment.
TEST(LibraryPath, AloneDecidesWhichLibraryAProgramMeets) {
    EXPECT_EQ(standin() == nullptr, std::getenv("SWAPLAB_OVER_REAL_CUDART") != nullptr);
}

}  // namespace
}  // namespace swaplab::sim
