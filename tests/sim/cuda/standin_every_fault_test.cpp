/// A step that swaps a buffer through the device, with every call of it failing in turn.

#include "kernels.hpp"
#include "standin_case.hpp"

#include <gmock/gmock.h>

#include <string>

namespace swaplab::sim {
namespace {

/// Uploads, works and downloads on streams of their own; gives back all that it has, whatever
/// happens.
class SwapStep {
  public:
    ~SwapStep() {
        static_cast<void>(cudaDeviceSynchronize());
        cudaFreeAsync(memory_, work_);
        static_cast<void>(cudaDeviceSynchronize());
        cudaFreeHost(pinned_);
        for (const cudaEvent_t event : {uploaded_, worked_}) {
            if (event != nullptr) {
                cudaEventDestroy(event);
            }
        }
        for (const cudaStream_t stream : {upload_, work_, download_}) {
            if (stream != nullptr) {
                cudaStreamDestroy(stream);
            }
        }
    }

    /// What the first failing call returns.
    cudaError_t run() {
        for (cudaStream_t* const stream : {&upload_, &work_, &download_}) {
            note(cudaStreamCreateWithFlags(stream, cudaStreamNonBlocking));
        }
        for (cudaEvent_t* const event : {&uploaded_, &worked_}) {
            note(cudaEventCreateWithFlags(event, cudaEventDisableTiming));
        }
        note(cudaHostAlloc(&pinned_, bytes, cudaHostAllocDefault));
        note(cudaMallocAsync(&memory_, bytes, upload_));
        note(cudaMemcpyAsync(memory_, pinned_, bytes, cudaMemcpyHostToDevice, upload_));
        note(cudaEventRecord(uploaded_, upload_));
        note(cudaStreamWaitEvent(work_, uploaded_, 0));
        if (first_ == cudaSuccess) {
            launch_scale(static_cast<float*>(memory_), bytes / sizeof(float), 2.0, work_);
            note(cudaGetLastError());
        }
        note(cudaEventRecord(worked_, work_));
        note(cudaStreamWaitEvent(download_, worked_, 0));
        note(cudaMemcpyAsync(pinned_, memory_, bytes, cudaMemcpyDeviceToHost, download_));
        note(cudaStreamSynchronize(download_));
        return first_;
    }

  private:
    void note(cudaError_t code) {
        if (first_ == cudaSuccess) {
            first_ = code;
        }
    }
    static constexpr std::size_t bytes = 400;
    cudaError_t first_ = cudaSuccess;
    cudaStream_t upload_ = nullptr;
    cudaStream_t work_ = nullptr;
    cudaStream_t download_ = nullptr;
    cudaEvent_t uploaded_ = nullptr;
    cudaEvent_t worked_ = nullptr;
    void* pinned_ = nullptr;
    void* memory_ = nullptr;
};

class StandinEveryFault : public StandinCase {
  protected:
    /// How many calls of that name the step makes, each having failed once.
    static std::uint64_t fail_each(const std::string& call, cudaError_t code, FaultAction action) {
        for (std::uint64_t ordinal = 1;; ++ordinal) {
            SCOPED_TRACE(call + " " + std::to_string(ordinal));
            begin({.faults = {{.call = call, .ordinal = ordinal, .code = code, .action = action}}});
            const cudaError_t result = SwapStep().run();
            EXPECT_EQ(device().ledger().now(MemoryKind::device), 0U);
            EXPECT_EQ(device().ledger().now(MemoryKind::pinned), 0U);
            if (result == cudaSuccess) {
                return ordinal - 1;
            }
            EXPECT_CUDA(code, result);
        }
    }
};

TEST_F(StandinEveryFault, LeavesNothingBehindAndIsReturned) {
    const std::pair<const char*, std::uint64_t> calls[] = {
        {"cudaStreamCreateWithFlags", 3},
        {"cudaEventCreateWithFlags", 2},
        {"cudaHostAlloc", 1},
        {"cudaMallocAsync", 1},
        {"cudaMemcpyAsync", 2},
        {"cudaEventRecord", 2},
        {"cudaStreamWaitEvent", 2},
        {"cudaLaunchKernel", 1},
        {"cudaStreamSynchronize", 1},
    };
    for (const auto& [call, count] : calls) {
        for (const cudaError_t code : {cudaErrorMemoryAllocation, cudaErrorECCUncorrectable}) {
            EXPECT_EQ(fail_each(call, code, FaultAction::fail), count) << call;
        }
    }
}

TEST_F(StandinEveryFault, OfWorkThatFailsLateIsReportedByTheSynchronization) {
    EXPECT_EQ(fail_each("cudaMemcpyAsync", cudaErrorLaunchFailure, FaultAction::late), 2U);
    EXPECT_EQ(fail_each("cudaLaunchKernel", cudaErrorIllegalAddress, FaultAction::late), 1U);
}

TEST_F(StandinEveryFault, WithoutOneTheStepHasNoFindings) {
    EXPECT_CUDA(cudaSuccess, SwapStep().run());
    device().finish();
    EXPECT_THAT(device().findings(), ::testing::IsEmpty());
}

}  // namespace
}  // namespace swaplab::sim
