/// Memory over the stand-in: what is given out, what is refused, what is left.

#include "standin_case.hpp"

#include "swaplab/sim/units.hpp"

#include <gmock/gmock.h>

#include <vector>

namespace swaplab::sim {
namespace {

using namespace literals;

class StandinMemory : public StandinCase {
  protected:
    static std::uint64_t free_bytes() {
        std::size_t free = 0;
        std::size_t total = 0;
        EXPECT_CUDA(cudaSuccess, cudaMemGetInfo(&free, &total));
        return free;
    }
    static std::uint64_t pool_figure(cudaMemPoolAttr attribute) {
        cudaMemPool_t pool = nullptr;
        std::uint64_t bytes = 0;
        EXPECT_CUDA(cudaSuccess, cudaDeviceGetDefaultMemPool(&pool, 0));
        EXPECT_CUDA(cudaSuccess, cudaMemPoolGetAttribute(pool, attribute, &bytes));
        return bytes;
    }
};

TEST_F(StandinMemory, AllocationsAreOnTheLedgerUnderTheirCallOrTheAnnouncedTag) {
    void* plain = nullptr;
    void* tagged = nullptr;
    ASSERT_CUDA(cudaMalloc(&plain, 1000));
    standin()->announce("weights", CallSite::here());
    ASSERT_CUDA(cudaMalloc(&tagged, 500));
    const MemoryLedger& ledger = device().ledger();
    EXPECT_EQ(ledger.tagged(MemoryKind::device, "cudaMalloc"), 1000U);
    EXPECT_EQ(ledger.tagged(MemoryKind::device, "weights"), 500U);
    EXPECT_EQ(ledger.now(MemoryKind::device, Size::rounded), 1024U + 512U);
    ASSERT_CUDA(cudaFree(plain));
    ASSERT_CUDA(cudaFree(tagged));
    EXPECT_EQ(ledger.now(MemoryKind::device), 0U);
}

TEST_F(StandinMemory, NothingIsGivenForZeroBytesAndNullIsFreed) {
    void* pointer = &pointer;
    ASSERT_CUDA(cudaMalloc(&pointer, 0));
    EXPECT_EQ(pointer, nullptr);
    ASSERT_CUDA(cudaMallocHost(&pointer, 0));
    EXPECT_EQ(pointer, nullptr);
    ASSERT_CUDA(cudaFree(nullptr));
    ASSERT_CUDA(cudaFreeHost(nullptr));
    ASSERT_CUDA(cudaFreeAsync(nullptr, nullptr));
}

TEST_F(StandinMemory, WhatDoesNotFitIsRefusedAndChangesNothing) {
    begin({.device = {.capacity_bytes = 1_MiB}});
    void* pointer = nullptr;
    EXPECT_CUDA(cudaErrorMemoryAllocation, cudaMalloc(&pointer, 1_MiB + 1));
    EXPECT_EQ(pointer, nullptr);
    EXPECT_THAT(standin()->last_error_text(), ::testing::HasSubstr("cudaMalloc"));
    EXPECT_CUDA(cudaErrorMemoryAllocation, cudaGetLastError());
    EXPECT_CUDA(cudaSuccess, cudaGetLastError());
    EXPECT_CUDA(cudaSuccess, cudaMalloc(&pointer, 1_MiB));
}

TEST_F(StandinMemory, TheContextTakesItsShareOfTheCapacity) {
    begin({.device = {.capacity_bytes = 8_MiB, .context_bytes = 3_MiB}});
    std::size_t free = 0;
    std::size_t total = 0;
    ASSERT_CUDA(cudaMemGetInfo(&free, &total));
    EXPECT_EQ(free, 5_MiB);
    EXPECT_EQ(total, 8_MiB);
}

TEST_F(StandinMemory, WrongFreesAreRefusedAndFound) {
    void* pointer = nullptr;
    void* pinned = nullptr;
    int local = 0;
    ASSERT_CUDA(cudaMalloc(&pointer, 1000));
    ASSERT_CUDA(cudaMallocHost(&pinned, 1000));
    EXPECT_CUDA(cudaErrorInvalidValue, cudaFree(static_cast<char*>(pointer) + 256));
    EXPECT_CUDA(cudaErrorInvalidValue, cudaFree(&local));
    EXPECT_CUDA(cudaErrorInvalidValue, cudaFree(pinned));
    EXPECT_CUDA(cudaErrorInvalidValue, cudaFreeHost(pointer));
    EXPECT_CUDA(cudaErrorInvalidValue, cudaFreeHost(static_cast<char*>(pinned) + 64));
    ASSERT_CUDA(cudaFree(pointer));
    EXPECT_CUDA(cudaErrorInvalidValue, cudaFree(pointer));
    EXPECT_THAT(device().findings(), ::testing::Not(::testing::IsEmpty()));
}

TEST_F(StandinMemory, FreeOfCudaMallocWaitsForTheWorkThatUsesIt) {
    cudaStream_t stream = nullptr;
    void* pointer = nullptr;
    ASSERT_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    ASSERT_CUDA(cudaMalloc(&pointer, 1000));
    ASSERT_CUDA(cudaMemsetAsync(pointer, 1, 1000, stream));
    ASSERT_CUDA(cudaFree(pointer));
    EXPECT_THAT(device().findings(), ::testing::IsEmpty());
}

TEST_F(StandinMemory, FreeOfPoolMemoryDoesNotWaitSoUseBesideItIsFound) {
    cudaStream_t stream = nullptr;
    void* pointer = nullptr;
    ASSERT_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    ASSERT_CUDA(cudaMallocAsync(&pointer, 1000, stream));
    ASSERT_CUDA(cudaMemsetAsync(pointer, 1, 1000, stream));
    ASSERT_CUDA(cudaFree(pointer));
    ASSERT_EQ(device().findings().size(), 1U);
    EXPECT_EQ(device().findings()[0].kind, FindingKind::in_flight_reuse);
}

TEST_F(StandinMemory, PoolMemoryFreedOnItsStreamIsInOrder) {
    cudaStream_t stream = nullptr;
    void* pointer = nullptr;
    ASSERT_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    ASSERT_CUDA(cudaMallocAsync(&pointer, 1000, stream));
    ASSERT_CUDA(cudaMemsetAsync(pointer, 1, 1000, stream));
    ASSERT_CUDA(cudaFreeAsync(pointer, stream));
    ASSERT_CUDA(cudaStreamSynchronize(stream));
    device().finish();
    EXPECT_THAT(device().findings(), ::testing::IsEmpty());
}

TEST_F(StandinMemory, ThePoolKeepsWhatItsThresholdAllows) {
    cudaStream_t stream = nullptr;
    cudaMemPool_t pool = nullptr;
    void* pointer = nullptr;
    ASSERT_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    ASSERT_CUDA(cudaDeviceGetDefaultMemPool(&pool, 0));
    std::uint64_t threshold = 4_MiB;
    ASSERT_CUDA(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold));
    const std::uint64_t before = free_bytes();
    ASSERT_CUDA(cudaMallocAsync(&pointer, 5_MiB, stream));
    EXPECT_EQ(pool_figure(cudaMemPoolAttrReservedMemCurrent), 6_MiB);
    EXPECT_EQ(pool_figure(cudaMemPoolAttrUsedMemCurrent), 5_MiB);
    EXPECT_EQ(before - free_bytes(), 6_MiB);
    ASSERT_CUDA(cudaFreeAsync(pointer, stream));
    EXPECT_EQ(before - free_bytes(), 6_MiB);
    ASSERT_CUDA(cudaStreamSynchronize(stream));
    EXPECT_EQ(before - free_bytes(), 4_MiB);
    ASSERT_CUDA(cudaMemPoolTrimTo(pool, 0));
    EXPECT_EQ(free_bytes(), before);
    EXPECT_EQ(pool_figure(cudaMemPoolAttrReservedMemHigh), 6_MiB);
    EXPECT_EQ(pool_figure(cudaMemPoolAttrUsedMemHigh), 5_MiB);
}

TEST_F(StandinMemory, CudaMallocTakesNothingOfAPool) {
    void* plain = nullptr;
    const std::uint64_t before = free_bytes();
    ASSERT_CUDA(cudaMalloc(&plain, 1_MiB));
    EXPECT_EQ(before - free_bytes(), 1_MiB);
    EXPECT_EQ(pool_figure(cudaMemPoolAttrReservedMemCurrent), 0U);
    ASSERT_CUDA(cudaFree(plain));
    EXPECT_EQ(free_bytes(), before);
}

TEST_F(StandinMemory, ACreatedPoolHasFiguresOfItsOwn) {
    begin({.device = {.capacity_bytes = 16_MiB}});
    cudaMemPoolProps properties{};
    properties.allocType = cudaMemAllocationTypePinned;
    properties.location = {cudaMemLocationTypeDevice, 0};
    cudaMemPool_t pool = nullptr;
    ASSERT_CUDA(cudaMemPoolCreate(&pool, &properties));
    std::uint64_t keep = 8_MiB;
    ASSERT_CUDA(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &keep));
    cudaStream_t stream = nullptr;
    void* own = nullptr;
    void* others = nullptr;
    ASSERT_CUDA(cudaStreamCreate(&stream));
    ASSERT_CUDA(cudaMallocFromPoolAsync(&own, 3_MiB, pool, stream));
    ASSERT_CUDA(cudaMallocAsync(&others, 1_MiB, stream));
    std::uint64_t bytes = 0;
    ASSERT_CUDA(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReservedMemHigh, &bytes));
    EXPECT_EQ(bytes, 4_MiB);
    EXPECT_EQ(pool_figure(cudaMemPoolAttrReservedMemHigh), 2_MiB);
    ASSERT_CUDA(cudaFreeAsync(others, stream));
    ASSERT_CUDA(cudaMemPoolDestroy(pool));
    EXPECT_CUDA(cudaErrorInvalidValue, cudaMemPoolTrimTo(pool, 0));
    EXPECT_CUDA(cudaErrorInvalidValue, cudaMallocFromPoolAsync(&others, 1, pool, stream));
    ASSERT_CUDA(cudaMemsetAsync(own, 1, 3_MiB, stream));
    ASSERT_CUDA(cudaFreeAsync(own, stream));
    ASSERT_CUDA(cudaDeviceSynchronize());
    EXPECT_EQ(free_bytes(), 16_MiB);
    EXPECT_TRUE(device().findings().empty());
}

TEST_F(StandinMemory, PoolsThatCannotBeAreRefused) {
    cudaMemPool_t pool = nullptr;
    cudaMemPoolProps properties{};
    EXPECT_CUDA(cudaErrorInvalidValue, cudaMemPoolCreate(&pool, &properties));
    properties.allocType = cudaMemAllocationTypePinned;
    properties.location = {cudaMemLocationTypeHost, 0};
    EXPECT_CUDA(cudaErrorNotSupported, cudaMemPoolCreate(&pool, &properties));
    properties.location = {cudaMemLocationTypeDevice, 7};
    EXPECT_CUDA(cudaErrorInvalidDevice, cudaMemPoolCreate(&pool, &properties));
    EXPECT_CUDA(cudaErrorInvalidValue, cudaMemPoolCreate(nullptr, &properties));
    ASSERT_CUDA(cudaDeviceGetDefaultMemPool(&pool, 0));
    EXPECT_CUDA(cudaErrorInvalidValue, cudaMemPoolDestroy(pool));
}

TEST_F(StandinMemory, PoolAttributesRefuseWhatIsNotToBeSet) {
    cudaMemPool_t pool = nullptr;
    ASSERT_CUDA(cudaDeviceGetDefaultMemPool(&pool, 0));
    std::uint64_t one = 1;
    std::uint64_t zero = 0;
    EXPECT_CUDA(cudaErrorInvalidValue,
                cudaMemPoolSetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &one));
    EXPECT_CUDA(cudaErrorInvalidValue,
                cudaMemPoolSetAttribute(pool, cudaMemPoolAttrUsedMemHigh, &one));
    EXPECT_CUDA(cudaSuccess, cudaMemPoolSetAttribute(pool, cudaMemPoolAttrUsedMemHigh, &zero));
    EXPECT_CUDA(cudaErrorInvalidValue, cudaMemPoolTrimTo(nullptr, 0));
}

TEST_F(StandinMemory, PointersTellWhereTheyAre) {
    void* pointer = nullptr;
    void* pinned = nullptr;
    int local = 0;
    ASSERT_CUDA(cudaMalloc(&pointer, 1000));
    ASSERT_CUDA(cudaHostAlloc(&pinned, 1000, cudaHostAllocPortable));
    cudaPointerAttributes found{};
    ASSERT_CUDA(cudaPointerGetAttributes(&found, static_cast<char*>(pointer) + 999));
    EXPECT_EQ(found.type, cudaMemoryTypeDevice);
    EXPECT_EQ(found.hostPointer, nullptr);
    ASSERT_CUDA(cudaPointerGetAttributes(&found, pinned));
    EXPECT_EQ(found.type, cudaMemoryTypeHost);
    EXPECT_EQ(found.hostPointer, pinned);
    ASSERT_CUDA(cudaPointerGetAttributes(&found, &local));
    EXPECT_EQ(found.type, cudaMemoryTypeUnregistered);
    unsigned flags = 0;
    ASSERT_CUDA(cudaHostGetFlags(&flags, pinned));
    EXPECT_EQ(flags, unsigned{cudaHostAllocPortable | cudaHostAllocMapped});
    EXPECT_CUDA(cudaErrorInvalidValue, cudaHostGetFlags(&flags, &local));
    EXPECT_CUDA(cudaErrorInvalidValue, cudaHostAlloc(&pinned, 1000, 0x80));
}

TEST_F(StandinMemory, RegisteredMemoryIsPinnedUntilItIsNot) {
    std::vector<char> host(10'000, 'r');
    char* const begin = host.data() + 1;
    void* pointer = nullptr;
    cudaStream_t stream = nullptr;
    ASSERT_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    ASSERT_CUDA(cudaMalloc(&pointer, 5000));
    ASSERT_CUDA(cudaHostRegister(begin, 5000, cudaHostRegisterDefault));
    ASSERT_CUDA(cudaMemcpyAsync(pointer, begin, 5000, cudaMemcpyHostToDevice, stream));
    standin()->host_access(begin, 1, Access::write, CallSite::here());
    ASSERT_EQ(device().findings().size(), 1U);
    EXPECT_EQ(device().findings()[0].kind, FindingKind::race);
    ASSERT_CUDA(cudaHostUnregister(begin));
    EXPECT_EQ(static_cast<char>(device().inspect(pointer)[0]), 'r');
    EXPECT_EQ(device().ledger().now(MemoryKind::pinned), 0U);
    EXPECT_EQ(device().findings().size(), 1U);
}

TEST_F(StandinMemory, WrongRegistrationsAreRefused) {
    std::vector<char> host(10'000);
    void* pointer = nullptr;
    ASSERT_CUDA(cudaMalloc(&pointer, 5000));
    ASSERT_CUDA(cudaHostRegister(host.data(), 5000, cudaHostRegisterDefault));
    EXPECT_CUDA(cudaErrorHostMemoryAlreadyRegistered,
                cudaHostRegister(host.data() + 100, 1, cudaHostRegisterDefault));
    EXPECT_CUDA(cudaErrorHostMemoryNotRegistered, cudaHostUnregister(host.data() + 1));
    EXPECT_CUDA(cudaErrorInvalidValue, cudaHostRegister(nullptr, 1, cudaHostRegisterDefault));
    EXPECT_CUDA(cudaErrorInvalidValue, cudaHostRegister(host.data(), 0, cudaHostRegisterDefault));
    EXPECT_CUDA(cudaErrorInvalidValue, cudaHostRegister(pointer, 100, cudaHostRegisterDefault));
    EXPECT_CUDA(cudaErrorNotSupported, cudaHostRegister(host.data(), 1, cudaHostRegisterIoMemory));
    EXPECT_CUDA(cudaErrorInvalidValue, cudaFreeHost(host.data()));
    EXPECT_CUDA(cudaSuccess, cudaHostUnregister(host.data()));
    EXPECT_CUDA(cudaErrorHostMemoryNotRegistered, cudaHostUnregister(host.data()));
}

TEST_F(StandinMemory, LeaksAreFoundAtTheEnd) {
    void* pointer = nullptr;
    ASSERT_CUDA(cudaMalloc(&pointer, 1000));
    device().finish();
    ASSERT_EQ(device().findings().size(), 1U);
    EXPECT_EQ(device().findings()[0].kind, FindingKind::leak);
}

}  // namespace
}  // namespace swaplab::sim
