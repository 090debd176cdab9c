/// How a CUDA device fails, by faults of the stand-in.

#include "contract_kernels.hpp"
#include "standin_case.hpp"

#include "swaplab/sim/buffer.hpp"
#include "swaplab/sim/cuda/cuda_device.hpp"
#include "swaplab/sim/stream.hpp"

#include <gmock/gmock.h>

#include <string>

namespace swaplab::sim {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;

class CudaErrors : public StandinCase {};

StandinFault fault(const std::string& call, cudaError_t code) {
    StandinFault result;
    result.call = call;
    result.code = code;
    return result;
}

TEST_F(CudaErrors, WithoutADriverItSaysSo) {
    StandinOptions options;
    options.driver_version = 0;
    begin(options);
    EXPECT_FALSE(cuda_available().usable);
    EXPECT_THAT(cuda_available().text, AllOf(HasSubstr("no CUDA driver"), HasSubstr("install")));
    EXPECT_THROW(static_cast<void>(make_cuda_device({})), DeviceError);
}

TEST_F(CudaErrors, ADriverTooOldIsNamedByVersion) {
    StandinOptions options;
    options.driver_version = 12040;
    begin(options);
    EXPECT_THAT(cuda_available().text, AllOf(HasSubstr("CUDA 12.4"), HasSubstr("13.0")));
}

TEST_F(CudaErrors, NoGpuAndAWrongOrdinalAreRefused) {
    StandinOptions options;
    options.device_count = 0;
    begin(options);
    EXPECT_THAT(cuda_available().text, HasSubstr("CUDA_VISIBLE_DEVICES"));
    begin({});
    EXPECT_TRUE(cuda_available().usable);
    try {
        static_cast<void>(make_cuda_device({.ordinal = 3}));
        FAIL() << "there is one GPU";
    } catch (const DeviceError& error) {
        EXPECT_THAT(error.fields(), Contains(ErrorField{"call", "cudaSetDevice"}));
        EXPECT_THAT(error.fields(), Contains(ErrorField{"number", "101"}));
    }
}

TEST_F(CudaErrors, MemoryOfTheGpuRunsOutBeforeTheCapacityAsked) {
    begin({});
    const auto device = make_cuda_device({.capacity_bytes = std::uint64_t{1} << 40U});
    const Stream stream(*device, "stream");
    const DeviceBuffer small(*device, 64, stream, "small");
    try {
        const DeviceBuffer large(*device, std::uint64_t{1} << 35U, stream, "large");
        FAIL() << "32 GiB fit into 1 GiB";
    } catch (const OutOfDeviceMemory& error) {
        EXPECT_EQ(error.report().tag, "large");
        EXPECT_LT(error.report().free_bytes(), std::uint64_t{1} << 30U);
        ASSERT_EQ(error.holders().size(), 1U);
    }
    EXPECT_EQ(device->ledger().now(MemoryKind::device), 64U);
}

TEST_F(CudaErrors, ACallThatFailsNamesItselfItsCodeAndTheWayOut) {
    begin({});
    const auto device = make_cuda_device({});
    standin()->arm({fault("cudaStreamCreateWithFlags", cudaErrorDevicesUnavailable)});
    try {
        const Stream stream(*device, "stream");
        FAIL() << "the fault did not strike";
    } catch (const DeviceLost&) {
        FAIL() << "the device is not lost";
    } catch (const DeviceError& error) {
        EXPECT_THAT(error.what(), AllOf(HasSubstr("cudaStreamCreateWithFlags"),
                                        HasSubstr("cudaErrorDevicesUnavailable (46)"),
                                        HasSubstr("compute mode")));
    }
    const Stream works(*device, "stream");
}

TEST_F(CudaErrors, ALaunchThatFailsLateIsNamedByTheCallThatReports) {
    begin({});
    const auto device = make_cuda_device({});
    const Stream stream(*device, "stream");
    const DeviceBuffer memory(*device, 64, stream, "memory");
    device->launch(cuda_breaking_kernel(), stream);
    try {
        device->synchronize(stream.ref());
        FAIL() << "the fault did not strike";
    } catch (const DeviceLost& error) {
        EXPECT_THAT(error.fields(), Contains(ErrorField{"origin", "launch broken"}));
        EXPECT_THAT(error.what(), AllOf(HasSubstr("cudaErrorLaunchFailure (719)"),
                                        HasSubstr("compute-sanitizer")));
    }
    EXPECT_THROW(device->fill_async(memory.data(), {}, 64, stream), DeviceLost);
}

TEST_F(CudaErrors, AnEccErrorBlamesTheHardware) {
    begin({});
    const auto device = make_cuda_device({});
    const Stream stream(*device, "stream");
    const DeviceBuffer memory(*device, 64, stream, "memory");
    standin()->arm({fault("cudaMemsetAsync", cudaErrorECCUncorrectable)});
    try {
        device->fill_async(memory.data(), {}, 64, stream);
        FAIL() << "the fault did not strike";
    } catch (const DeviceLost& error) {
        EXPECT_THAT(error.what(), AllOf(HasSubstr("(214)"), HasSubstr("Xid")));
    }
}

TEST_F(CudaErrors, NoFreeMemoryForTheDeviceItselfIsSaid) {
    begin({});
    standin()->arm({fault("cudaMemPoolCreate", cudaErrorMemoryAllocation)});
    try {
        static_cast<void>(make_cuda_device({}));
        FAIL() << "the fault did not strike";
    } catch (const DeviceError& error) {
        EXPECT_THAT(error.fields(), Contains(ErrorField{"call", "cudaMemPoolCreate"}));
        EXPECT_THAT(error.fields(), Contains(ErrorField{"number", "2"}));
        EXPECT_THAT(error.fields(), Contains(::testing::Field(&ErrorField::name, "advice")));
    }
    const auto works = make_cuda_device({});
}

/// What the documentation says of a code decides whether the device can go on.
TEST_F(CudaErrors, CodesThatNeedANewProcessLoseTheDeviceAndOthersDoNot) {
    const auto thrown_by = [](int code) {
        begin({});
        const auto device = make_cuda_device({});
        const Stream stream(*device, "stream");
        const DeviceBuffer memory(*device, 64, stream, "memory");
        standin()->arm({fault("cudaMemsetAsync", static_cast<cudaError_t>(code))});
        try {
            device->fill_async(memory.data(), {}, 64, stream);
        } catch (const DeviceLost&) {
            return std::string("DeviceLost");
        } catch (const DeviceError&) {
            return std::string("DeviceError");
        }
        return std::string("nothing");
    };
    for (const int code : {226, 700, 702, 710, 714, 715, 716, 717, 718, 719, 721, 810, 911}) {
        EXPECT_EQ(thrown_by(code), "DeviceLost") << code;
    }
    for (const int code : {1, 2, 46, 400}) {
        EXPECT_EQ(thrown_by(code), "DeviceError") << code;
    }
}

TEST_F(CudaErrors, WhatHasRunIsNotSuspected) {
    begin({});
    const auto device = make_cuda_device({});
    const Stream first(*device, "first");
    const Stream second(*device, "second");
    const DeviceBuffer memory(*device, 64, first, "memory");
    device->launch(cuda_add_kernel(memory.data(), 64, 1), first);
    const Event done(*device);
    device->record(done, first);
    device->wait(second, done);
    device->synchronize(second.ref());
    device->launch(cuda_breaking_kernel(), second);
    try {
        device->synchronize(second.ref());
        FAIL() << "the fault did not strike";
    } catch (const DeviceLost& error) {
        EXPECT_THAT(error.fields(), Contains(ErrorField{"origin", "launch broken"}));
    }
}

TEST_F(CudaErrors, AKernelWithoutALauncherIsRefused) {
    begin({});
    const auto device = make_cuda_device({});
    const Stream stream(*device, "stream");
    EXPECT_THROW(device->launch({"plain", {}, {}, [](const DeviceAccess&) {}, {}}, stream),
                 ArgumentError);
}

}  // namespace
}  // namespace swaplab::sim
