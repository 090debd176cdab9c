#pragma once

/// What every Device must do, written against the seam only. A backend runs it with
///   INSTANTIATE_TYPED_TEST_SUITE_P(Name, DeviceContract, Maker);
/// where Maker has
///   static std::shared_ptr<Device> make(std::uint64_t capacity_bytes);
///   static Kernel add(std::byte* pointer, std::uint64_t bytes, int amount);  // to every byte
///   static std::optional<Kernel> breaking();  // fails as it runs; nullopt: must not be tried here

#include "swaplab/sim/buffer.hpp"
#include "swaplab/sim/device.hpp"
#include "swaplab/sim/error.hpp"
#include "swaplab/sim/stream.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

namespace swaplab::sim {

constexpr std::uint64_t contract_capacity_bytes = std::uint64_t{1} << 20U;

/// Fills pinned memory with `first`, `first + 1`, ...
inline void write_count(PinnedBuffer& buffer, unsigned first) {
    const HostWriteScope scope = buffer.write(0, buffer.bytes());
    for (std::byte& value : scope.bytes()) {
        value = static_cast<std::byte>(first++);
    }
}

inline std::vector<std::byte> contents(const PinnedBuffer& buffer) {
    const HostReadScope scope = buffer.read(0, buffer.bytes());
    return {scope.bytes().begin(), scope.bytes().end()};
}

/// Adds `amount` to every byte of `range` on a simulated device.
inline Kernel add_kernel(std::byte* pointer, std::uint64_t bytes, int amount) {
    const ByteRange range{pointer, bytes};
    return {"add",
            {range},
            {range},
            [pointer, bytes, amount](const DeviceAccess& access) {
                std::for_each_n(access.at(pointer), bytes, [amount](std::byte& value) {
                    value = static_cast<std::byte>(std::to_integer<int>(value) + amount);
                });
            },
            {}};
}

template <class Maker>
class DeviceContract : public ::testing::Test {
  protected:
    std::shared_ptr<Device> owner = Maker::make(contract_capacity_bytes);
    Device& device = *owner;
    Stream stream{device, "stream"};
    Stream other{device, "other"};

    void upload(const DeviceBuffer& to, const PinnedBuffer& from, StreamRef on) {
        device.copy_async(to.data(), from.data(), from.bytes(), CopyDirection::host_to_device, on);
    }
    void download(const PinnedBuffer& to, const DeviceBuffer& from, StreamRef on) {
        device.copy_async(to.data(), from.data(), to.bytes(), CopyDirection::device_to_host, on);
    }
};
TYPED_TEST_SUITE_P(DeviceContract);

TYPED_TEST_P(DeviceContract, BytesComeBackAsTheyWent) {
    for (const std::uint64_t bytes : {1U, 255U, 4097U}) {
        const DeviceBuffer memory(this->device, bytes, this->stream, "memory");
        PinnedBuffer from(this->device, bytes, "from");
        const PinnedBuffer to(this->device, bytes, "to");
        write_count(from, 3);
        this->upload(memory, from, this->stream);
        this->download(to, memory, this->stream);
        this->device.synchronize(this->stream.ref());
        EXPECT_EQ(contents(to), contents(from));
    }
}

TYPED_TEST_P(DeviceContract, WorkOfOneStreamRunsInIssueOrder) {
    const DeviceBuffer memory(this->device, 16, this->stream, "memory");
    const DeviceBuffer copy(this->device, 16, this->stream, "copy");
    const PinnedBuffer to(this->device, 16, "to");
    this->device.fill_async(memory.data(), std::byte{5}, 16, this->stream);
    this->device.launch(TypeParam::add(memory.data(), 16, 2), this->stream);
    this->device.copy_async(copy.data(), memory.data(), 16, CopyDirection::device_to_device,
                            this->stream);
    this->device.launch(TypeParam::add(memory.data(), 16, 2), this->stream);
    this->download(to, copy, this->stream);
    this->device.synchronize(this->stream.ref());
    EXPECT_THAT(contents(to), ::testing::Each(std::byte{7}));
}

TYPED_TEST_P(DeviceContract, AWaitOrdersAStreamAfterTheRecordedWork) {
    const DeviceBuffer memory(this->device, 64, this->stream, "memory");
    const PinnedBuffer to(this->device, 64, "to");
    const Event filled(this->device);
    this->device.fill_async(memory.data(), std::byte{9}, 64, this->stream);
    this->device.record(filled, this->stream);
    this->device.wait(this->other, filled);
    this->download(to, memory, this->other);
    this->device.synchronize(this->other.ref());
    EXPECT_THAT(contents(to), ::testing::Each(std::byte{9}));
}

TYPED_TEST_P(DeviceContract, AWaitKeepsTheRecordItSawWhenItWasCalled) {
    const DeviceBuffer memory(this->device, 64, this->stream, "memory");
    const PinnedBuffer to(this->device, 64, "to");
    const Event event(this->device);
    this->device.fill_async(memory.data(), std::byte{1}, 64, this->stream);
    this->device.record(event, this->stream);
    this->device.wait(this->other, event);
    // Were the wait bound to the newest record, the two streams would wait for each other.
    this->download(to, memory, this->other);
    this->device.record(event, this->other);
    this->device.wait(this->stream, event);
    this->device.fill_async(memory.data(), std::byte{2}, 64, this->stream);
    this->device.synchronize(this->other.ref());
    EXPECT_THAT(contents(to), ::testing::Each(std::byte{1}));
    this->device.synchronize(this->stream.ref());
}

TYPED_TEST_P(DeviceContract, RecordingAgainReplacesTheMark) {
    const DeviceBuffer memory(this->device, 64, this->stream, "memory");
    const PinnedBuffer to(this->device, 64, "to");
    const Event event(this->device);
    this->device.record(event, this->stream);
    this->device.fill_async(memory.data(), std::byte{4}, 64, this->stream);
    this->device.record(event, this->stream);
    this->device.wait(this->other, event);
    this->download(to, memory, this->other);
    this->device.synchronize(this->other.ref());
    EXPECT_THAT(contents(to), ::testing::Each(std::byte{4}));
}

TYPED_TEST_P(DeviceContract, AnEventNeverRecordedIsNoConstraint) {
    const Event event(this->device);
    EXPECT_TRUE(this->device.query(event));
    this->device.wait(this->stream, event);
    this->device.synchronize(event.ref());
}

TYPED_TEST_P(DeviceContract, QueryBecomesTrueAndThenTheHostMayRead) {
    const DeviceBuffer memory(this->device, 64, this->stream, "memory");
    const PinnedBuffer to(this->device, 64, "to");
    const Event done(this->device);
    this->device.fill_async(memory.data(), std::byte{6}, 64, this->stream);
    this->download(to, memory, this->stream);
    this->device.record(done, this->stream);
    while (!this->device.query(done)) {
    }
    EXPECT_THAT(contents(to), ::testing::Each(std::byte{6}));
}

TYPED_TEST_P(DeviceContract, WorkOfADestroyedStreamStillRuns) {
    const DeviceBuffer memory(this->device, 64, this->stream, "memory");
    const PinnedBuffer to(this->device, 64, "to");
    const Event done(this->device);
    this->device.fill_async(memory.data(), std::byte{8}, 64, this->stream);
    {
        const Stream brief(this->device, "brief");
        this->device.record(done, this->stream);
        this->device.wait(brief, done);
        this->download(to, memory, brief);
        this->device.record(done, brief);
    }
    const Stream next(this->device, "next");
    this->device.synchronize(done.ref());
    EXPECT_THAT(contents(to), ::testing::Each(std::byte{8}));
}

TYPED_TEST_P(DeviceContract, CallsOfZeroBytesDoNothing) {
    this->device.copy_async(nullptr, nullptr, 0, CopyDirection::host_to_device, this->stream);
    this->device.fill_async(nullptr, std::byte{1}, 0, this->stream);
    const DeviceBuffer empty(this->device, 0, this->stream, "empty");
    EXPECT_EQ(empty.data(), nullptr);
    const PinnedBuffer nothing(this->device, 0, "nothing");
    EXPECT_TRUE(nothing.read(0, 0).bytes().empty());
    EXPECT_EQ(this->device.ledger().now(MemoryKind::device), 0U);
}

TYPED_TEST_P(DeviceContract, MemoryIsAlignedAndPinnedMemoryIsZero) {
    const DeviceBuffer first(this->device, 1, this->stream, "first");
    const DeviceBuffer second(this->device, 1, this->stream, "second");
    const PinnedBuffer pinned(this->device, 5000, "pinned");
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(first.data()) % 256, 0U);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(second.data()) % 256, 0U);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(pinned.data()) % 4096, 0U);
    EXPECT_THAT(contents(pinned), ::testing::Each(std::byte{0}));
}

TYPED_TEST_P(DeviceContract, EveryByteIsOnTheLedgerUntilItIsFreed) {
    MemoryLedger& ledger = this->device.ledger();
    {
        const DeviceBuffer memory(this->device, 300, this->stream, "memory");
        const PinnedBuffer pinned(this->device, 5000, "pinned");
        const HostBuffer host(this->device, 7, "host");
        EXPECT_EQ(ledger.tagged(MemoryKind::device, "memory"), 300U);
        EXPECT_EQ(ledger.now(MemoryKind::device, Size::rounded), 512U);
        EXPECT_EQ(ledger.tagged(MemoryKind::pinned, "pinned"), 5000U);
        EXPECT_EQ(ledger.now(MemoryKind::pinned, Size::rounded), 8192U);
        EXPECT_EQ(ledger.tagged(MemoryKind::host, "host"), 7U);
        EXPECT_EQ(this->device.memory_info().free_bytes, contract_capacity_bytes - 512);
    }
    for (const MemoryKind kind : {MemoryKind::device, MemoryKind::pinned, MemoryKind::host}) {
        EXPECT_EQ(ledger.now(kind), 0U);
        EXPECT_EQ(ledger.live_count(kind), 0U);
    }
    EXPECT_EQ(this->device.memory_info().free_bytes, contract_capacity_bytes);
}

TYPED_TEST_P(DeviceContract, AllOfTheCapacityCanBeUsedAgainAndAgain) {
    for (int round = 0; round < 3; ++round) {
        const DeviceBuffer half(this->device, contract_capacity_bytes / 2, this->stream, "half");
        const DeviceBuffer rest(this->device, contract_capacity_bytes / 2, this->other, "rest");
        EXPECT_EQ(this->device.memory_info().free_bytes, 0U);
    }
}

TYPED_TEST_P(DeviceContract, ARefusedAllocationNamesTheHoldersAndChangesNothing) {
    const DeviceBuffer large(this->device, contract_capacity_bytes - 512, this->stream, "large");
    const DeviceBuffer small(this->device, 100, this->stream, "small");
    const std::uint64_t before = this->device.ledger().now(MemoryKind::device);
    try {
        const DeviceBuffer refused(this->device, 257, this->stream, "refused");
        FAIL() << "257 B fit into 256 B";
    } catch (const OutOfDeviceMemory& error) {
        EXPECT_EQ(error.report().tag, "refused");
        EXPECT_EQ(error.report().requested_bytes, 257U);
        EXPECT_EQ(error.report().rounded_bytes, 512U);
        EXPECT_EQ(error.report().charged_bytes, contract_capacity_bytes - 256);
        ASSERT_EQ(error.holders().size(), 2U);
        EXPECT_EQ(error.holders()[0].tag, "large");
        EXPECT_EQ(error.holders()[1].tag, "small");
    }
    EXPECT_EQ(this->device.ledger().now(MemoryKind::device), before);
    EXPECT_EQ(this->device.ledger().peak(MemoryKind::device), before);
    const DeviceBuffer fits(this->device, 256, this->stream, "fits");
}

TYPED_TEST_P(DeviceContract, WrongArgumentsAreRefusedAndNothingIsIssued) {
    const DeviceBuffer memory(this->device, 64, this->stream, "memory");
    PinnedBuffer pinned(this->device, 64, "pinned");
    std::byte plain[64] = {};
    const auto copy = [&](void* to, const void* from, std::uint64_t bytes, CopyDirection way) {
        this->device.copy_async(to, from, bytes, way, this->stream);
    };
    constexpr auto up = CopyDirection::host_to_device;
    constexpr auto down = CopyDirection::device_to_host;
    EXPECT_THROW(copy(memory.data(), pinned.data(), 65, up), ArgumentError);
    EXPECT_THROW(copy(memory.data() + 1, pinned.data(), 64, up), ArgumentError);
    EXPECT_THROW(copy(memory.data(), pinned.data() + 1, 64, up), ArgumentError);
    EXPECT_THROW(copy(memory.data(), pinned.data(), 64, down), ArgumentError);
    EXPECT_THROW(copy(pinned.data(), memory.data(), 64, up), ArgumentError);
    EXPECT_THROW(copy(memory.data(), plain, 64, up), ArgumentError);
    EXPECT_THROW(copy(plain, memory.data(), 64, down), ArgumentError);
    EXPECT_THROW(this->device.fill_async(memory.data(), {}, 65, this->stream), ArgumentError);
    EXPECT_THROW(this->device.fill_async(pinned.data(), {}, 64, this->stream), ArgumentError);
    EXPECT_THROW(this->device.launch(TypeParam::add(memory.data(), 65, 1), this->stream),
                 ArgumentError);
    EXPECT_THROW(static_cast<void>(pinned.read(1, 64)), ArgumentError);
    EXPECT_THROW(static_cast<void>(this->device.allocate(0, this->stream, "none")), ArgumentError);
    EXPECT_THROW(static_cast<void>(this->device.allocate_pinned(0, "none")), ArgumentError);
    this->device.synchronize(this->stream.ref());
    EXPECT_THAT(contents(pinned), ::testing::Each(std::byte{0}));
}

TYPED_TEST_P(DeviceContract, FreedMemoryAndForeignHandlesAreRefused) {
    std::byte* freed = nullptr;
    {
        const DeviceBuffer brief(this->device, 64, this->stream, "brief");
        freed = brief.data();
    }
    EXPECT_THROW(this->device.fill_async(freed, {}, 64, this->stream), ArgumentError);
    const auto stranger = TypeParam::make(contract_capacity_bytes);
    const Stream foreign(*stranger, "foreign");
    const DeviceBuffer memory(this->device, 64, this->stream, "memory");
    EXPECT_THROW(this->device.fill_async(memory.data(), {}, 64, foreign), ArgumentError);
    const Event event(*stranger);
    EXPECT_THROW(this->device.wait(this->stream, event), ArgumentError);
}

TYPED_TEST_P(DeviceContract, OwnersMoveAndLeaveNothingBehind) {
    MemoryLedger& ledger = this->device.ledger();
    DeviceBuffer memory(this->device, 64, this->stream, "first");
    std::byte* const address = memory.data();
    DeviceBuffer taken = std::move(memory);
    EXPECT_EQ(taken.data(), address);
    taken = DeviceBuffer(this->device, 32, this->stream, "second");
    EXPECT_EQ(ledger.now(MemoryKind::device), 32U);
    PinnedBuffer pinned(this->device, 64, "first");
    pinned = PinnedBuffer(this->device, 32, "second");
    EXPECT_EQ(ledger.now(MemoryKind::pinned), 32U);
    HostBuffer host(this->device, 64, "first");
    host = HostBuffer(this->device, 32, "second");
    EXPECT_EQ(ledger.now(MemoryKind::host), 32U);
    Stream moved = std::move(this->other);
    this->other = std::move(moved);
    this->device.fill_async(taken.data(), std::byte{1}, 32, this->other);
    this->device.synchronize(this->other.ref());
}

REGISTER_TYPED_TEST_SUITE_P(
    DeviceContract, BytesComeBackAsTheyWent, WorkOfOneStreamRunsInIssueOrder,
    AWaitOrdersAStreamAfterTheRecordedWork, AWaitKeepsTheRecordItSawWhenItWasCalled,
    RecordingAgainReplacesTheMark, AnEventNeverRecordedIsNoConstraint,
    QueryBecomesTrueAndThenTheHostMayRead, WorkOfADestroyedStreamStillRuns,
    CallsOfZeroBytesDoNothing, MemoryIsAlignedAndPinnedMemoryIsZero,
    EveryByteIsOnTheLedgerUntilItIsFreed, AllOfTheCapacityCanBeUsedAgainAndAgain,
    ARefusedAllocationNamesTheHoldersAndChangesNothing, WrongArgumentsAreRefusedAndNothingIsIssued,
    FreedMemoryAndForeignHandlesAreRefused, OwnersMoveAndLeaveNothingBehind);

}  // namespace swaplab::sim
