/// Streams, events and their order over the stand-in.

#include "standin_case.hpp"

#include <gmock/gmock.h>

#include <vector>

namespace swaplab::sim {
namespace {

using ::testing::IsEmpty;

class StandinStreams : public StandinCase {
  protected:
    static cudaStream_t stream(unsigned flags) {
        cudaStream_t created = nullptr;
        EXPECT_CUDA(cudaSuccess, cudaStreamCreateWithFlags(&created, flags));
        return created;
    }
    static cudaEvent_t event() {
        cudaEvent_t created = nullptr;
        EXPECT_CUDA(cudaSuccess, cudaEventCreateWithFlags(&created, cudaEventDisableTiming));
        return created;
    }
    /// Device memory that two fills meet in.
    static void* memory() {
        void* pointer = nullptr;
        EXPECT_CUDA(cudaSuccess, cudaMalloc(&pointer, bytes));
        return pointer;
    }
    static void fill(void* pointer, cudaStream_t on) {
        EXPECT_CUDA(cudaSuccess, cudaMemsetAsync(pointer, 1, bytes, on));
    }
    static constexpr std::size_t bytes = 1000;
};

TEST_F(StandinStreams, TheDefaultStreamIsOrderedWithBlockingStreamsOnly) {
    const unsigned kinds[] = {cudaStreamDefault, cudaStreamNonBlocking};
    for (const unsigned kind : kinds) {
        for (const bool default_first : {false, true}) {
            begin({});
            const cudaStream_t own = stream(kind);
            void* const pointer = memory();
            fill(pointer, default_first ? nullptr : own);
            fill(pointer, default_first ? own : nullptr);
            EXPECT_EQ(device().findings().size(), kind == cudaStreamNonBlocking ? 1U : 0U);
        }
    }
}

TEST_F(StandinStreams, TheStreamOfAThreadIsABlockingOne) {
    void* const pointer = memory();
    fill(pointer, cudaStreamPerThread);
    fill(pointer, cudaStreamLegacy);
    EXPECT_THAT(device().findings(), IsEmpty());
    fill(pointer, cudaStreamPerThread);
    fill(pointer, stream(cudaStreamDefault));
    EXPECT_EQ(device().findings().size(), 1U);
}

TEST_F(StandinStreams, AnEventRecordedAgainKeepsOldWaits) {
    const cudaStream_t first = stream(cudaStreamNonBlocking);
    const cudaStream_t second = stream(cudaStreamNonBlocking);
    const cudaEvent_t mark = event();
    void* const pointer = memory();
    ASSERT_CUDA(cudaEventRecord(mark, first));
    ASSERT_CUDA(cudaStreamWaitEvent(second, mark, 0));
    fill(pointer, first);
    ASSERT_CUDA(cudaEventRecord(mark, first));
    fill(pointer, second);
    EXPECT_EQ(device().findings().size(), 1U);
}

TEST_F(StandinStreams, AnEventNeverRecordedIsNoConstraint) {
    const cudaStream_t own = stream(cudaStreamNonBlocking);
    const cudaEvent_t mark = event();
    EXPECT_CUDA(cudaSuccess, cudaEventQuery(mark));
    EXPECT_CUDA(cudaSuccess, cudaEventSynchronize(mark));
    EXPECT_CUDA(cudaSuccess, cudaStreamWaitEvent(own, mark, 0));
}

TEST_F(StandinStreams, QueriesAreNotReadyUntilTheWorkHasRun) {
    for (const cudaStream_t own : {stream(cudaStreamNonBlocking), cudaStream_t{}}) {
        const cudaEvent_t mark = event();
        void* const pointer = memory();
        fill(pointer, own);
        fill(pointer, own);
        ASSERT_CUDA(cudaEventRecord(mark, own));
        EXPECT_CUDA(cudaErrorNotReady, cudaStreamQuery(own));
        EXPECT_CUDA(cudaErrorNotReady, cudaPeekAtLastError());
        int polls = 0;
        while (cudaStreamQuery(own) == cudaErrorNotReady && polls < 100) {
            ++polls;
        }
        EXPECT_CUDA(cudaSuccess, cudaStreamQuery(own));
        EXPECT_CUDA(cudaSuccess, cudaEventQuery(mark));
        ASSERT_CUDA(cudaFree(pointer));
    }
}

TEST_F(StandinStreams, TheDeviceIsDoneWhenDestroyedStreamsAre) {
    for (const unsigned kind : {unsigned{cudaStreamDefault}, unsigned{cudaStreamNonBlocking}}) {
        const cudaStream_t own = stream(kind);
        void* const pointer = memory();
        fill(pointer, own);
        ASSERT_CUDA(cudaStreamDestroy(own));
        ASSERT_CUDA(cudaDeviceSynchronize());
        EXPECT_EQ(*device().inspect(pointer), std::byte{1});
        ASSERT_CUDA(cudaFree(pointer));
    }
    device().finish();
    EXPECT_THAT(device().findings(), IsEmpty());
}

TEST_F(StandinStreams, HandlesOfNothingAreRefused) {
    const cudaStream_t gone = stream(cudaStreamDefault);
    const cudaEvent_t gone_event = event();
    ASSERT_CUDA(cudaStreamDestroy(gone));
    ASSERT_CUDA(cudaEventDestroy(gone_event));
    EXPECT_CUDA(cudaErrorInvalidResourceHandle, cudaStreamDestroy(gone));
    EXPECT_CUDA(cudaErrorInvalidResourceHandle, cudaStreamDestroy(nullptr));
    EXPECT_CUDA(cudaErrorInvalidResourceHandle, cudaStreamSynchronize(gone));
    EXPECT_CUDA(cudaErrorInvalidResourceHandle, cudaEventDestroy(gone_event));
    EXPECT_CUDA(cudaErrorInvalidResourceHandle, cudaEventRecord(gone_event, nullptr));
    EXPECT_CUDA(cudaErrorInvalidResourceHandle, cudaEventRecord(nullptr, nullptr));
    EXPECT_CUDA(cudaErrorInvalidResourceHandle,
                cudaStreamSynchronize(reinterpret_cast<cudaStream_t>(&device())));
}

TEST_F(StandinStreams, HandlesAreUsedAgain) {
    const cudaStream_t first = stream(cudaStreamDefault);
    ASSERT_CUDA(cudaStreamDestroy(first));
    EXPECT_EQ(stream(cudaStreamDefault), first);
}

TEST_F(StandinStreams, FlagsAndPrioritiesAreCheckedAndKept) {
    cudaStream_t created = nullptr;
    cudaEvent_t mark = nullptr;
    int least = 1;
    int greatest = 1;
    ASSERT_CUDA(cudaDeviceGetStreamPriorityRange(&least, &greatest));
    ASSERT_CUDA(cudaStreamCreateWithPriority(&created, cudaStreamNonBlocking, greatest - 10));
    unsigned flags = 0;
    int priority = 0;
    ASSERT_CUDA(cudaStreamGetFlags(created, &flags));
    ASSERT_CUDA(cudaStreamGetPriority(created, &priority));
    EXPECT_EQ(flags, unsigned{cudaStreamNonBlocking});
    EXPECT_EQ(priority, greatest);
    EXPECT_LE(greatest, least);
    EXPECT_CUDA(cudaErrorInvalidValue, cudaStreamCreateWithFlags(&created, 2));
    EXPECT_CUDA(cudaErrorInvalidValue, cudaEventCreateWithFlags(&mark, 8));
    EXPECT_CUDA(cudaErrorNotSupported,
                cudaEventCreateWithFlags(&mark, cudaEventInterprocess | cudaEventDisableTiming));
    EXPECT_CUDA(cudaErrorInvalidValue, cudaStreamWaitEvent(created, event(), 7));
}

TEST_F(StandinStreams, EventsAndStreamsOfTwoDevicesDoNotMix) {
    begin({.device_count = 2});
    const cudaStream_t own = stream(cudaStreamNonBlocking);
    ASSERT_CUDA(cudaSetDevice(1));
    const cudaEvent_t mark = event();
    EXPECT_CUDA(cudaErrorInvalidResourceHandle, cudaEventRecord(mark, own));
    EXPECT_CUDA(cudaErrorNotSupported, cudaStreamWaitEvent(own, mark, 0));
    int number = -1;
    ASSERT_CUDA(cudaStreamGetDevice(own, &number));
    EXPECT_EQ(number, 0);
}

TEST_F(StandinStreams, ElapsedTimeIsVirtual) {
    StandinOptions options;
    options.profile = {.name = "slow", .kernel_bytes_per_second = 1e6};
    begin(options);
    const cudaStream_t own = stream(cudaStreamNonBlocking);
    cudaEvent_t start = nullptr;
    cudaEvent_t end = nullptr;
    float milliseconds = -1;
    ASSERT_CUDA(cudaEventCreate(&start));
    ASSERT_CUDA(cudaEventCreate(&end));
    void* const pointer = memory();
    EXPECT_CUDA(cudaErrorInvalidResourceHandle, cudaEventElapsedTime(&milliseconds, start, end));
    ASSERT_CUDA(cudaEventRecord(start, own));
    fill(pointer, own);
    fill(pointer, own);
    ASSERT_CUDA(cudaEventRecord(end, own));
    EXPECT_CUDA(cudaErrorNotReady, cudaEventElapsedTime(&milliseconds, start, end));
    ASSERT_CUDA(cudaEventSynchronize(end));
    ASSERT_CUDA(cudaEventElapsedTime(&milliseconds, start, end));
    EXPECT_FLOAT_EQ(milliseconds, 2.0F);  // 2 x 1000 B at 1 MB/s
    const cudaEvent_t untimed = event();
    ASSERT_CUDA(cudaEventRecord(untimed, own));
    ASSERT_CUDA(cudaEventSynchronize(untimed));
    EXPECT_CUDA(cudaErrorInvalidResourceHandle,
                cudaEventElapsedTime(&milliseconds, start, untimed));
}

TEST_F(StandinStreams, HostFunctionsRunInOrderAndMayNotCallCuda) {
    struct Seen {
        int calls = 0;
        cudaError_t answer = cudaSuccess;
    } seen;
    const cudaStream_t own = stream(cudaStreamNonBlocking);
    const auto function = [](void* data) {
        auto* const found = static_cast<Seen*>(data);
        ++found->calls;
        found->answer = cudaDeviceSynchronize();
    };
    ASSERT_CUDA(cudaLaunchHostFunc(own, function, &seen));
    EXPECT_EQ(seen.calls, 0);
    ASSERT_CUDA(cudaStreamSynchronize(own));
    EXPECT_EQ(seen.calls, 1);
    EXPECT_CUDA(cudaErrorNotPermitted, seen.answer);
    EXPECT_CUDA(cudaErrorInvalidValue, cudaLaunchHostFunc(own, nullptr, nullptr));
}

TEST_F(StandinStreams, ResetTakesEverythingOfTheDevice) {
    const cudaStream_t own = stream(cudaStreamNonBlocking);
    void* const pointer = memory();
    ASSERT_CUDA(cudaDeviceReset());
    EXPECT_CUDA(cudaErrorInvalidResourceHandle, cudaStreamSynchronize(own));
    cudaPointerAttributes found{};
    ASSERT_CUDA(cudaPointerGetAttributes(&found, pointer));
    EXPECT_EQ(found.type, cudaMemoryTypeUnregistered);
    EXPECT_EQ(device().ledger().now(MemoryKind::device), 0U);
}

TEST_F(StandinStreams, AnnouncedNamesAndSitesAreInFindings) {
    standin()->announce("upload", CallSite::here());
    const cudaStream_t first = stream(cudaStreamNonBlocking);
    standin()->announce("weights", {"engine.cpp", 7});
    void* const pointer = memory();
    standin()->announce("", {"engine.cpp", 12});
    fill(pointer, first);
    standin()->announce("", {"engine.cpp", 34});
    fill(pointer, stream(cudaStreamNonBlocking));
    ASSERT_EQ(device().findings().size(), 1U);
    EXPECT_THAT(device().findings()[0].text,
                ::testing::AllOf(::testing::HasSubstr("upload"), ::testing::HasSubstr("weights"),
                                 ::testing::HasSubstr("engine.cpp:12"),
                                 ::testing::HasSubstr("engine.cpp:34")));
}

}  // namespace
}  // namespace swaplab::sim
