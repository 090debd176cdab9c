#pragma once

/// CUDA's rules for streams, events, copies, host functions and errors, one test each, written
/// against the seam only. A backend runs them beside DeviceContract, with the same Maker (see
/// device_contract.hpp), with
///   INSTANTIATE_TYPED_TEST_SUITE_P(Name, DeviceSemantics, Maker);

#include "device_contract.hpp"

#include <cstring>
#include <functional>
#include <string>

namespace swaplab::sim {

template <class Maker>
class DeviceSemantics : public DeviceContract<Maker> {
  protected:
    static constexpr std::uint64_t size_bytes = 4096;

    void fill(const DeviceBuffer& memory, int value, StreamRef on) {
        this->device.fill_async(memory.data(), static_cast<std::byte>(value), memory.bytes(), on);
    }
    void add(const DeviceBuffer& memory, int amount, StreamRef on) {
        this->device.launch(Maker::add(memory.data(), memory.bytes(), amount), on);
    }
    /// What `memory` holds once `on` has run.
    std::vector<std::byte> read(const DeviceBuffer& memory, StreamRef on) {
        std::vector<std::byte> bytes(memory.bytes());
        this->device.copy_pageable(bytes.data(), memory.data(), memory.bytes(),
                                   CopyDirection::device_to_host, on);
        return bytes;
    }
    static auto all(int value) { return ::testing::Each(static_cast<std::byte>(value)); }
    /// Empty when `call` does not throw a DeviceLost.
    static ErrorFields lost(const std::function<void()>& call) {
        try {
            call();
        } catch (const DeviceLost& error) {
            return error.fields();
        }
        return {};
    }
};
TYPED_TEST_SUITE_P(DeviceSemantics);

// Streams: the default stream against blocking ones, both ways.

TYPED_TEST_P(DeviceSemantics, TheDefaultStreamRunsAfterEarlierWorkOfBlockingStreams) {
    const Stream blocking(this->device, "blocking", StreamKind::blocking);
    const DeviceBuffer memory(this->device, this->size_bytes, blocking, "memory");
    this->fill(memory, 1, blocking);
    this->add(memory, 2, blocking);
    EXPECT_THAT(this->read(memory, this->device.default_stream()), this->all(3));
}

TYPED_TEST_P(DeviceSemantics, BlockingStreamsRunAfterEarlierWorkOfTheDefaultStream) {
    const StreamRef standard = this->device.default_stream();
    const Stream blocking(this->device, "blocking", StreamKind::blocking);
    const DeviceBuffer memory(this->device, this->size_bytes, standard, "memory");
    this->fill(memory, 1, standard);
    this->add(memory, 2, standard);
    EXPECT_THAT(this->read(memory, blocking), this->all(3));
}

TYPED_TEST_P(DeviceSemantics, TheDefaultStreamOrdersBlockingStreamsWithEachOther) {
    const Stream one(this->device, "one", StreamKind::blocking);
    const Stream two(this->device, "two", StreamKind::blocking);
    const DeviceBuffer memory(this->device, this->size_bytes, one, "memory");
    const DeviceBuffer between(this->device, this->size_bytes, one, "between");
    this->fill(memory, 1, one);
    this->fill(between, 0, this->device.default_stream());
    this->add(memory, 2, two);
    EXPECT_THAT(this->read(memory, two), this->all(3));
}

TYPED_TEST_P(DeviceSemantics, TheDefaultStreamRunsAfterDestroyedBlockingStreams) {
    const DeviceBuffer memory(this->device, this->size_bytes, this->stream, "memory");
    const Event allocated(this->device);
    this->device.record(allocated, this->stream);
    {
        const Stream brief(this->device, "brief", StreamKind::blocking);
        this->device.wait(brief, allocated);
        this->fill(memory, 7, brief);
    }
    EXPECT_THAT(this->read(memory, this->device.default_stream()), this->all(7));
}

TYPED_TEST_P(DeviceSemantics, TheDefaultStreamIsOneAndCanBeRecordedAndWaitedFor) {
    const StreamRef standard = this->device.default_stream();
    EXPECT_EQ(standard, this->device.default_stream());
    const DeviceBuffer memory(this->device, this->size_bytes, standard, "memory");
    const Event done(this->device);
    this->fill(memory, 4, standard);
    this->device.record(done, standard);
    this->device.wait(this->stream, done);
    EXPECT_THAT(this->read(memory, this->stream), this->all(4));
    this->device.synchronize(standard);
}

// Events and handles.

TYPED_TEST_P(DeviceSemantics, ADestroyedEventStillOrdersWhatWaitedForIt) {
    const DeviceBuffer memory(this->device, this->size_bytes, this->stream, "memory");
    {
        const Event brief(this->device);
        this->fill(memory, 5, this->stream);
        this->device.record(brief, this->stream);
        this->device.wait(this->other, brief);
    }
    EXPECT_THAT(this->read(memory, this->other), this->all(5));
}

TYPED_TEST_P(DeviceSemantics, AnEventInPlaceOfADestroyedOneWasNeverRecorded) {
    const DeviceBuffer memory(this->device, this->size_bytes, this->stream, "memory");
    {
        const Event brief(this->device);
        this->fill(memory, 5, this->stream);
        this->device.record(brief, this->stream);
        this->device.wait(this->other, brief);
    }
    const Event fresh(this->device);
    EXPECT_TRUE(this->device.query(fresh));
    this->device.synchronize(this->other.ref());
}

// rapidsai/rmm#2252: memory that was freed on a destroyed stream is known by a handle that the next
// stream gets.
TYPED_TEST_P(DeviceSemantics, AStreamWithAReusedHandleDoesNotInheritFreedMemory) {
    const PinnedBuffer seen(this->device, this->size_bytes, "seen");
    const Event copied(this->device);
    {
        const Stream brief(this->device, "brief");
        const DeviceBuffer old(this->device, this->size_bytes, brief, "old");
        this->fill(old, 1, brief);
        this->download(seen, old, brief);
        this->device.record(copied, brief);
    }
    const Stream next(this->device, "next");
    const DeviceBuffer fresh(this->device, this->size_bytes, next, "fresh");
    this->fill(fresh, 2, next);
    this->device.synchronize(next.ref());
    this->device.synchronize(copied.ref());
    EXPECT_THAT(contents(seen), this->all(1));
}

// rapidsai/rmm#2165: "usable by everybody" must not depend on the default stream.
TYPED_TEST_P(DeviceSemantics, MemoryIsForEveryStreamOnceItsAllocationWasWaitedFor) {
    const DeviceBuffer memory(this->device, this->size_bytes, this->stream, "memory");
    this->device.synchronize(this->stream.ref());
    this->fill(memory, 3, this->other);
    EXPECT_THAT(this->read(memory, this->other), this->all(3));
}

// rapidsai/rmm#2401: giving memory back must not overtake the work that uses it.
TYPED_TEST_P(DeviceSemantics, FreeingMemoryWaitsForTheWorkThatUsesIt) {
    const PinnedBuffer seen(this->device, this->size_bytes, "seen");
    for (int round = 1; round <= 3; ++round) {
        const DeviceBuffer brief(this->device, this->size_bytes, this->stream, "brief");
        this->fill(brief, round, this->stream);
        this->add(brief, 10, this->stream);
        this->download(seen, brief, this->stream);
    }
    this->device.synchronize(this->stream.ref());
    EXPECT_THAT(contents(seen), this->all(13));
}

// rapidsai/rmm#2304 and #1966: what is known of a freed allocation must not be taken for, or read
// from, the next one at its address.
TYPED_TEST_P(DeviceSemantics, MemoryAtAFreedAddressIsSomebodyElses) {
    MemoryLedger& ledger = this->device.ledger();
    for (int round = 0; round < 100; ++round) {
        { const DeviceBuffer old(this->device, 512, this->stream, "old"); }
        const DeviceBuffer fresh(this->device, 300, this->stream, "fresh");
        ASSERT_EQ(ledger.tagged(MemoryKind::device, "old"), 0U);
        ASSERT_EQ(ledger.tagged(MemoryKind::device, "fresh"), 300U);
        const std::vector<Holder> holders = ledger.holders(MemoryKind::device, 10);
        ASSERT_EQ(holders.size(), 1U);
        ASSERT_EQ(holders[0].tag, "fresh");
    }
    this->device.synchronize(this->stream.ref());
}

// Copies of ordinary host memory.

TYPED_TEST_P(DeviceSemantics, APageableUploadHasReadItsSourceWhenItReturns) {
    for (const std::uint64_t bytes : {1U, 4096U, 100'000U}) {
        const DeviceBuffer memory(this->device, bytes, this->stream, "memory");
        std::vector<std::byte> source(bytes, std::byte{6});
        this->device.copy_pageable(memory.data(), source.data(), bytes,
                                   CopyDirection::host_to_device, this->stream);
        std::fill(source.begin(), source.end(), std::byte{0});
        EXPECT_THAT(this->read(memory, this->stream), this->all(6));
    }
}

TYPED_TEST_P(DeviceSemantics, APageableDownloadHasRunWhenItReturns) {
    const DeviceBuffer memory(this->device, this->size_bytes, this->stream, "memory");
    const PinnedBuffer pinned(this->device, this->size_bytes, "pinned");
    this->fill(memory, 1, this->stream);
    this->download(pinned, memory, this->stream);
    this->add(memory, 1, this->stream);
    std::vector<std::byte> bytes(this->size_bytes);
    this->device.copy_pageable(bytes.data(), memory.data(), this->size_bytes,
                               CopyDirection::device_to_host, this->stream);
    EXPECT_THAT(bytes, this->all(2));
    EXPECT_THAT(contents(pinned), this->all(1)) << "the host may use what ran before it, too";
}

TYPED_TEST_P(DeviceSemantics, APageableUploadKeepsItsPlaceInTheStream) {
    const DeviceBuffer memory(this->device, this->size_bytes, this->stream, "memory");
    const std::vector<std::byte> source(this->size_bytes, std::byte{5});
    this->fill(memory, 1, this->stream);
    this->device.copy_pageable(memory.data(), source.data(), this->size_bytes,
                               CopyDirection::host_to_device, this->stream);
    this->add(memory, 1, this->stream);
    EXPECT_THAT(this->read(memory, this->stream), this->all(6));
}

TYPED_TEST_P(DeviceSemantics, PageableCopiesRefuseOtherMemoryAndOtherDirections) {
    const DeviceBuffer memory(this->device, 64, this->stream, "memory");
    const PinnedBuffer pinned(this->device, 64, "pinned");
    std::byte plain[64] = {};
    const auto copy = [&](void* to, const void* from, std::uint64_t bytes, CopyDirection way) {
        this->device.copy_pageable(to, from, bytes, way, this->stream);
    };
    constexpr auto up = CopyDirection::host_to_device;
    constexpr auto down = CopyDirection::device_to_host;
    EXPECT_THROW(copy(memory.data(), pinned.data(), 64, up), ArgumentError);
    EXPECT_THROW(copy(pinned.data(), memory.data(), 64, down), ArgumentError);
    EXPECT_THROW(copy(memory.data(), memory.data(), 64, up), ArgumentError);
    EXPECT_THROW(copy(memory.data(), plain, 64, CopyDirection::device_to_device), ArgumentError);
    EXPECT_THROW(copy(memory.data(), plain, 64, down), ArgumentError);
    EXPECT_THROW(copy(plain, memory.data() + 1, 64, down), ArgumentError);
    EXPECT_THROW(copy(plain, plain, 64, up), ArgumentError);
    copy(nullptr, nullptr, 0, up);
    this->device.synchronize(this->stream.ref());
}

// Host functions.

TYPED_TEST_P(DeviceSemantics, AHostFunctionRunsInTheOrderOfItsStream) {
    const DeviceBuffer memory(this->device, 64, this->stream, "memory");
    const PinnedBuffer pinned(this->device, 64, "pinned");
    std::byte* const bytes = pinned.data();
    this->fill(memory, 1, this->stream);
    this->download(pinned, memory, this->stream);
    this->device.call_host({"double",
                            {{bytes, 64}},
                            {{bytes, 64}},
                            [bytes] { std::for_each_n(bytes, 64, [](std::byte& b) { b <<= 1; }); }},
                           this->stream);
    this->upload(memory, pinned, this->stream);
    this->add(memory, 1, this->stream);
    EXPECT_THAT(this->read(memory, this->stream), this->all(3));
}

TYPED_TEST_P(DeviceSemantics, AHostFunctionMustNotCallItsDevice) {
    const Event event(this->device);
    bool refused = false;
    this->device.call_host({"calls",
                            {},
                            {},
                            [&] {
                                try {
                                    this->device.record(event, this->stream);
                                } catch (const ArgumentError&) {
                                    refused = true;
                                }
                            }},
                           this->other);
    this->device.synchronize(this->other.ref());
    EXPECT_TRUE(refused);
}

// Errors.

TYPED_TEST_P(DeviceSemantics, RefusalsAreNotSticky) {
    const DeviceBuffer memory(this->device, 64, this->stream, "memory");
    const std::uint64_t too_much = this->device.memory_info().capacity_bytes + 1;
    EXPECT_THROW(DeviceBuffer(this->device, too_much, this->stream, "large"), OutOfDeviceMemory);
    EXPECT_THROW(this->device.fill_async(memory.data(), {}, 65, this->stream), ArgumentError);
    EXPECT_THROW(this->device.copy_async(memory.data(), memory.data(), 64,
                                         CopyDirection::host_to_device, this->stream),
                 ArgumentError);
    this->fill(memory, 8, this->stream);
    EXPECT_THAT(this->read(memory, this->stream), this->all(8));
}

TYPED_TEST_P(DeviceSemantics, ALateErrorNamesWhatFailedAndTheCallThatReports) {
    const std::optional<Kernel> breaking = TypeParam::breaking();
    if (!breaking) {
        GTEST_SKIP() << "a device lost here cannot be replaced";
    }
    const Event done(this->device);
    this->device.launch(*breaking, this->stream);
    const ErrorFields fields = this->lost([&] {
        this->device.record(done, this->stream);
        this->device.synchronize(done.ref());
    });
    EXPECT_THAT(fields, ::testing::Contains(ErrorField{"operation", "synchronize"}));
    EXPECT_THAT(fields, ::testing::Contains(ErrorField{"origin", "launch " + breaking->name}));
    EXPECT_THAT(fields, ::testing::Contains(::testing::Field(
                            &ErrorField::value, ::testing::HasSubstr("device_semantics.hpp"))));
}

TYPED_TEST_P(DeviceSemantics, ALostDeviceRefusesEveryCallAndRunsNothing) {
    const std::optional<Kernel> breaking = TypeParam::breaking();
    if (!breaking) {
        GTEST_SKIP() << "a device lost here cannot be replaced";
    }
    Device& target = this->device;
    const DeviceBuffer memory(target, 64, this->stream, "memory");
    const PinnedBuffer pinned(target, 64, "pinned");
    const Event event(target);
    std::byte plain[64] = {};
    bool called = false;
    this->fill(memory, 1, this->stream);
    target.launch(*breaking, this->stream);
    this->download(pinned, memory, this->stream);
    target.call_host({"after", {}, {}, [&called] { called = true; }}, this->stream);
    EXPECT_THROW(target.synchronize(this->stream.ref()), DeviceLost);
    const std::vector<std::function<void()>> calls{
        [&] { (void)target.allocate(8, this->stream, "x"); },
        [&] { (void)target.allocate_pinned(8, "x"); },
        [&] { (void)target.create_stream("x"); },
        [&] { (void)target.create_event(); },
        [&] { this->download(pinned, memory, this->stream); },
        [&] { this->read(memory, this->stream); },
        [&] {
            target.copy_pageable(memory.data(), plain, 64, CopyDirection::host_to_device,
                                 this->stream);
        },
        [&] { this->fill(memory, 2, this->stream); },
        [&] { this->add(memory, 2, this->stream); },
        [&] {
            target.call_host({"later", {}, {}, [] {}}, this->stream);
        },
        [&] { target.record(event.ref(), this->stream); },
        [&] { target.wait(this->stream, event.ref()); },
        [&] { target.synchronize(event.ref()); },
        [&] { (void)target.query(event.ref()); },
        [&] { target.synchronize(this->stream.ref()); }};
    for (std::size_t i = 0; i < calls.size(); ++i) {
        EXPECT_THROW(calls[i](), DeviceLost) << "call " << i;
    }
    EXPECT_FALSE(called);
}

TYPED_TEST_P(DeviceSemantics, OwnersGiveEverythingBackToALostDevice) {
    const std::optional<Kernel> breaking = TypeParam::breaking();
    if (!breaking) {
        GTEST_SKIP() << "a device lost here cannot be replaced";
    }
    {
        const Stream brief(this->device, "brief");
        const DeviceBuffer memory(this->device, 64, brief, "memory");
        const PinnedBuffer pinned(this->device, 64, "pinned");
        this->device.launch(*breaking, brief);
        this->upload(memory, pinned, brief);
        EXPECT_THROW(this->device.synchronize(brief.ref()), DeviceLost);
    }
    EXPECT_EQ(this->device.ledger().now(MemoryKind::device), 0U);
    EXPECT_EQ(this->device.ledger().now(MemoryKind::pinned), 0U);
}

REGISTER_TYPED_TEST_SUITE_P(
    DeviceSemantics, TheDefaultStreamRunsAfterEarlierWorkOfBlockingStreams,
    BlockingStreamsRunAfterEarlierWorkOfTheDefaultStream,
    TheDefaultStreamOrdersBlockingStreamsWithEachOther,
    TheDefaultStreamRunsAfterDestroyedBlockingStreams,
    TheDefaultStreamIsOneAndCanBeRecordedAndWaitedFor, ADestroyedEventStillOrdersWhatWaitedForIt,
    AnEventInPlaceOfADestroyedOneWasNeverRecorded,
    AStreamWithAReusedHandleDoesNotInheritFreedMemory,
    MemoryIsForEveryStreamOnceItsAllocationWasWaitedFor, FreeingMemoryWaitsForTheWorkThatUsesIt,
    MemoryAtAFreedAddressIsSomebodyElses, APageableUploadHasReadItsSourceWhenItReturns,
    APageableDownloadHasRunWhenItReturns, APageableUploadKeepsItsPlaceInTheStream,
    PageableCopiesRefuseOtherMemoryAndOtherDirections, AHostFunctionRunsInTheOrderOfItsStream,
    AHostFunctionMustNotCallItsDevice, RefusalsAreNotSticky,
    ALateErrorNamesWhatFailedAndTheCallThatReports, ALostDeviceRefusesEveryCallAndRunsNothing,
    OwnersGiveEverythingBackToALostDevice);

}  // namespace swaplab::sim
