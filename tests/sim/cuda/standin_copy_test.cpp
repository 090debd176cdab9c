/// Copies and fills over the stand-in: what moves, when the host waits, what is refused.

#include "standin_case.hpp"

#include <gmock/gmock.h>

#include <cstring>
#include <vector>

namespace swaplab::sim {
namespace {

class StandinCopies : public StandinCase {
  protected:
    void SetUp() override {
        StandinCase::SetUp();
        if (!IsSkipped()) {
            set_up({});
        }
    }
    void set_up(const StandinOptions& options) {
        begin(options);
        ASSERT_CUDA(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
        ASSERT_CUDA(cudaMalloc(&memory_, bytes));
        ASSERT_CUDA(cudaMalloc(&other_, bytes));
        void* pinned = nullptr;
        ASSERT_CUDA(cudaMallocHost(&pinned, bytes));
        pinned_ = static_cast<char*>(pinned);
        std::memset(pinned_, 'p', bytes);
    }
    [[nodiscard]] char on_device(std::size_t at = 0) const {
        return static_cast<char>(device().inspect(memory_)[at]);
    }
    static constexpr std::size_t bytes = 1000;
    cudaStream_t stream_ = nullptr;
    void* memory_ = nullptr;
    void* other_ = nullptr;
    char* pinned_ = nullptr;
    std::vector<char> pageable_ = std::vector<char>(bytes, 'g');
};

TEST_F(StandinCopies, EveryKindMovesBytes) {
    std::vector<char> result(bytes, '-');
    ASSERT_CUDA(cudaMemcpy(memory_, pinned_, bytes, cudaMemcpyHostToDevice));
    ASSERT_CUDA(cudaMemcpy(other_, memory_, bytes, cudaMemcpyDeviceToDevice));
    ASSERT_CUDA(cudaMemcpy(result.data(), other_, bytes, cudaMemcpyDeviceToHost));
    EXPECT_THAT(result, ::testing::Each('p'));
    ASSERT_CUDA(cudaMemcpy(memory_, pageable_.data(), bytes, cudaMemcpyDefault));
    ASSERT_CUDA(cudaMemcpy(pinned_, memory_, bytes, cudaMemcpyDefault));
    EXPECT_EQ(pinned_[bytes - 1], 'g');
    ASSERT_CUDA(cudaMemcpy(result.data(), pinned_, bytes, cudaMemcpyHostToHost));
    EXPECT_THAT(result, ::testing::Each('g'));
    EXPECT_THAT(device().findings(), ::testing::IsEmpty());
}

TEST_F(StandinCopies, ThoseWithinTheDeviceAndFillsDoNotWaitForTheHostsSake) {
    ASSERT_CUDA(cudaMemcpy(memory_, pinned_, bytes, cudaMemcpyHostToDevice));
    EXPECT_EQ(on_device(), 'p');
    ASSERT_CUDA(cudaMemset(other_, 'f', bytes));
    ASSERT_CUDA(cudaMemcpy(memory_, other_, bytes, cudaMemcpyDeviceToDevice));
    EXPECT_EQ(on_device(), 'p');
    ASSERT_CUDA(cudaDeviceSynchronize());
    EXPECT_EQ(on_device(), 'f');
    EXPECT_THAT(device().findings(), ::testing::IsEmpty());
}

TEST_F(StandinCopies, AsynchronousCopiesOfPinnedMemoryRunLater) {
    ASSERT_CUDA(cudaMemcpyAsync(memory_, pinned_, bytes, cudaMemcpyHostToDevice, stream_));
    pinned_[0] = 'x';
    standin()->host_access(pinned_, 1, Access::write, CallSite::here());
    ASSERT_CUDA(cudaStreamSynchronize(stream_));
    EXPECT_EQ(on_device(), 'x');
    ASSERT_EQ(device().findings().size(), 1U);
    EXPECT_EQ(device().findings()[0].kind, FindingKind::race);
}

TEST_F(StandinCopies, PageableSourcesMayBeUsedAgainAtOnceUnderEverySchedule) {
    for (const Schedule schedule : {Schedule::fifo, Schedule::random, Schedule::latest}) {
        for (std::uint64_t seed = 1; seed <= 5; ++seed) {
            set_up({.device = {.schedule = schedule, .seed = seed}});
            std::vector<char> source(bytes, 's');
            ASSERT_CUDA(
                cudaMemcpyAsync(memory_, source.data(), bytes, cudaMemcpyHostToDevice, stream_));
            std::fill(source.begin(), source.end(), 'x');
            ASSERT_CUDA(cudaStreamSynchronize(stream_));
            EXPECT_EQ(on_device(bytes - 1), 's');
        }
    }
}

TEST_F(StandinCopies, APageableUploadIsNotOrderedWithOtherStreams) {
    cudaStream_t other = nullptr;
    ASSERT_CUDA(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
    ASSERT_CUDA(cudaMemcpy(memory_, pageable_.data(), bytes, cudaMemcpyHostToDevice));
    ASSERT_CUDA(cudaMemcpyAsync(pinned_, memory_, bytes, cudaMemcpyDeviceToHost, other));
    EXPECT_EQ(device().findings().size(), 1U);
}

TEST_F(StandinCopies, APageableDownloadIsDoneWhenItReturns) {
    ASSERT_CUDA(cudaMemcpyAsync(memory_, pinned_, bytes, cudaMemcpyHostToDevice, stream_));
    ASSERT_CUDA(cudaMemcpyAsync(pageable_.data(), memory_, bytes, cudaMemcpyDeviceToHost, stream_));
    EXPECT_THAT(pageable_, ::testing::Each('p'));
}

TEST_F(StandinCopies, CopiesWithinTheHostWaitForTheirStream) {
    ASSERT_CUDA(cudaMemsetAsync(memory_, 'm', bytes, stream_));
    ASSERT_CUDA(cudaMemcpyAsync(pinned_, memory_, bytes, cudaMemcpyDeviceToHost, stream_));
    ASSERT_CUDA(cudaMemcpyAsync(pageable_.data(), pinned_, bytes, cudaMemcpyHostToHost, stream_));
    EXPECT_THAT(pageable_, ::testing::Each('m'));
    EXPECT_THAT(device().findings(), ::testing::IsEmpty());
}

TEST_F(StandinCopies, WhatTheKindDoesNotSayIsRefused) {
    EXPECT_CUDA(cudaErrorInvalidValue, cudaMemcpy(pinned_, memory_, bytes, cudaMemcpyHostToDevice));
    EXPECT_CUDA(cudaErrorInvalidValue, cudaMemcpy(memory_, pinned_, bytes, cudaMemcpyDeviceToHost));
    EXPECT_CUDA(cudaErrorInvalidValue,
                cudaMemcpy(memory_, pageable_.data(), bytes, cudaMemcpyDeviceToDevice));
    EXPECT_CUDA(cudaErrorInvalidMemcpyDirection,
                cudaMemcpy(memory_, pinned_, bytes, static_cast<cudaMemcpyKind>(7)));
    EXPECT_CUDA(cudaErrorInvalidValue, cudaMemcpy(nullptr, pinned_, bytes, cudaMemcpyDefault));
    EXPECT_CUDA(cudaErrorInvalidValue, cudaMemcpy(memory_, nullptr, bytes, cudaMemcpyDefault));
    EXPECT_CUDA(cudaSuccess, cudaMemcpy(nullptr, nullptr, 0, cudaMemcpyDefault));
}

TEST_F(StandinCopies, OverrunsAreRefused) {
    EXPECT_CUDA(cudaErrorInvalidValue,
                cudaMemcpy(memory_, pageable_.data(), bytes + 1, cudaMemcpyHostToDevice));
    EXPECT_CUDA(cudaErrorInvalidValue, cudaMemsetAsync(memory_, 0, bytes + 1, stream_));
    EXPECT_CUDA(cudaErrorInvalidValue, cudaMemsetAsync(pageable_.data(), 0, 1, stream_));
    EXPECT_CUDA(cudaErrorInvalidValue, cudaMemsetAsync(nullptr, 0, 1, stream_));
    EXPECT_CUDA(cudaSuccess, cudaMemsetAsync(nullptr, 0, 0, stream_));
}

TEST_F(StandinCopies, FreedDeviceMemoryIsRefusedAndFound) {
    ASSERT_CUDA(cudaFree(memory_));
    EXPECT_CUDA(cudaErrorInvalidValue, cudaMemcpy(memory_, pinned_, bytes, cudaMemcpyDefault));
    EXPECT_CUDA(cudaErrorInvalidValue,
                cudaMemcpy(pageable_.data(), memory_, bytes, cudaMemcpyDefault));
    EXPECT_CUDA(cudaErrorInvalidValue, cudaMemset(memory_, 0, bytes));
    EXPECT_THAT(device().findings(), ::testing::SizeIs(::testing::Ge(1U)));
    for (const Finding& finding : device().findings()) {
        EXPECT_EQ(finding.kind, FindingKind::use_after_free);
    }
}

TEST_F(StandinCopies, CopiesWithoutAnEventBetweenStreamsAreARace) {
    cudaStream_t other = nullptr;
    ASSERT_CUDA(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
    ASSERT_CUDA(cudaMemcpyAsync(memory_, pinned_, bytes, cudaMemcpyHostToDevice, stream_));
    ASSERT_CUDA(cudaMemcpyAsync(pinned_, memory_, bytes, cudaMemcpyDeviceToHost, other));
    EXPECT_THAT(device().findings(), ::testing::Not(::testing::IsEmpty()));
}

TEST_F(StandinCopies, ReadingWhatWasNeverWrittenIsFound) {
    ASSERT_CUDA(cudaMemcpy(pinned_, memory_, bytes, cudaMemcpyDeviceToHost));
    ASSERT_EQ(device().findings().size(), 1U);
    EXPECT_EQ(device().findings()[0].kind, FindingKind::uninitialised);
}

TEST_F(StandinCopies, ABatchMovesAllItsCopiesInOrder) {
    void* destinations[] = {memory_, other_};
    const void* sources[] = {pinned_, memory_};
    std::size_t sizes[] = {bytes, bytes};
    cudaMemcpyAttributes attributes{};
    attributes.srcAccessOrder = cudaMemcpySrcAccessOrderStream;
    std::size_t firsts[] = {0};
    const auto batch = [&](std::size_t count, std::size_t attribute_count, cudaStream_t stream) {
        return cudaMemcpyBatchAsync(destinations, sources, sizes, count, &attributes, firsts,
                                    attribute_count, stream);
    };
    ASSERT_CUDA(batch(2, 1, stream_));
    ASSERT_CUDA(cudaStreamSynchronize(stream_));
    EXPECT_EQ(static_cast<char>(device().inspect(other_)[0]), 'p');
    EXPECT_CUDA(cudaErrorInvalidValue, batch(0, 1, stream_));
    EXPECT_CUDA(cudaErrorInvalidValue, batch(2, 0, stream_));
    EXPECT_CUDA(cudaErrorInvalidValue, batch(2, 3, stream_));
    EXPECT_CUDA(cudaErrorInvalidValue, batch(2, 1, nullptr));
    attributes.srcAccessOrder = cudaMemcpySrcAccessOrderInvalid;
    EXPECT_CUDA(cudaErrorInvalidValue, batch(2, 1, stream_));
}

}  // namespace
}  // namespace swaplab::sim
