/// Errors over the stand-in: drivers, devices, last errors and their names.

#include "standin_case.hpp"

#include <gmock/gmock.h>

#include <dlfcn.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace swaplab::sim {
namespace {

class StandinErrors : public StandinCase {};

TEST_F(StandinErrors, WithoutADriverEveryCallSaysSo) {
    begin({.driver_version = 0});
    int version = -1;
    int count = -1;
    void* pointer = nullptr;
    EXPECT_CUDA(cudaSuccess, cudaDriverGetVersion(&version));
    EXPECT_EQ(version, 0);
    EXPECT_CUDA(cudaSuccess, cudaRuntimeGetVersion(&version));
    EXPECT_EQ(version, CUDART_VERSION);
    EXPECT_CUDA(cudaErrorInsufficientDriver, cudaGetDeviceCount(&count));
    EXPECT_CUDA(cudaErrorInsufficientDriver, cudaMalloc(&pointer, 1));
    EXPECT_CUDA(cudaErrorInsufficientDriver, cudaGetLastError());
    EXPECT_CUDA(cudaErrorInsufficientDriver, cudaGetLastError());
}

TEST_F(StandinErrors, ADriverThatIsTooOldIsNamed) {
    begin({.driver_version = 12080});
    EXPECT_CUDA(cudaErrorInsufficientDriver, cudaSetDevice(0));
    EXPECT_THAT(standin()->last_error_text(), ::testing::HasSubstr("12080"));
}

TEST_F(StandinErrors, WithoutADeviceThereIsNone) {
    begin({.device_count = 0});
    int count = -1;
    EXPECT_CUDA(cudaErrorNoDevice, cudaGetDeviceCount(&count));
    EXPECT_EQ(count, 0);
    EXPECT_CUDA(cudaErrorNoDevice, cudaSetDevice(0));
}

TEST_F(StandinErrors, DevicesAreApart) {
    begin({.device_count = 2});
    int current = -1;
    void* pointer = nullptr;
    EXPECT_CUDA(cudaErrorInvalidDevice, cudaSetDevice(2));
    ASSERT_CUDA(cudaSetDevice(1));
    ASSERT_CUDA(cudaGetDevice(&current));
    EXPECT_EQ(current, 1);
    ASSERT_CUDA(cudaMalloc(&pointer, 100));
    EXPECT_EQ(standin()->device(0).ledger().now(MemoryKind::device), 0U);
    EXPECT_EQ(standin()->device(1).ledger().now(MemoryKind::device), 100U);
}

TEST_F(StandinErrors, TheDeviceDescribesItself) {
    cudaDeviceProp properties{};
    int value = 0;
    ASSERT_CUDA(cudaGetDeviceProperties(&properties, 0));
    EXPECT_STREQ(properties.name, "swaplab stand-in");
    EXPECT_EQ(properties.major, 9);
    EXPECT_EQ(properties.totalGlobalMem, StandinOptions{}.device.capacity_bytes);
    ASSERT_CUDA(cudaDeviceGetAttribute(&value, cudaDevAttrMultiProcessorCount, 0));
    EXPECT_EQ(value, properties.multiProcessorCount);
    EXPECT_CUDA(cudaErrorInvalidValue,
                cudaDeviceGetAttribute(&value, static_cast<cudaDeviceAttr>(0), 0));
    EXPECT_CUDA(cudaErrorInvalidDevice, cudaGetDeviceProperties(&properties, 1));
    char name[16] = "";
    ASSERT_CUDA(cudaDeviceGetPCIBusId(name, sizeof(name), 0));
    EXPECT_STREQ(name, "0000:01:00.0");
    EXPECT_CUDA(cudaErrorInvalidValue, cudaDeviceGetPCIBusId(name, 5, 0));
}

TEST_F(StandinErrors, NoPlaceForAnAnswerIsAnInvalidValue) {
    EXPECT_CUDA(cudaErrorInvalidValue, cudaGetDeviceCount(nullptr));
    EXPECT_CUDA(cudaErrorInvalidValue, cudaGetDevice(nullptr));
    EXPECT_CUDA(cudaErrorInvalidValue, cudaMalloc(nullptr, 1));
    EXPECT_CUDA(cudaErrorInvalidValue, cudaMallocAsync(nullptr, 1, nullptr));
    EXPECT_CUDA(cudaErrorInvalidValue, cudaMallocHost(nullptr, 1));
    EXPECT_CUDA(cudaErrorInvalidValue, cudaStreamCreate(nullptr));
    EXPECT_CUDA(cudaErrorInvalidValue, cudaEventCreate(nullptr));
    EXPECT_CUDA(cudaErrorInvalidValue, cudaMemGetInfo(nullptr, nullptr));
    EXPECT_CUDA(cudaErrorInvalidValue, cudaPointerGetAttributes(nullptr, nullptr));
    EXPECT_CUDA(cudaErrorInvalidValue, cudaRuntimeGetVersion(nullptr));
    EXPECT_CUDA(cudaErrorInvalidValue, cudaDriverGetVersion(nullptr));
}

TEST_F(StandinErrors, TheLastErrorIsOfItsThreadAndForgottenWhenTaken) {
    EXPECT_CUDA(cudaErrorInvalidValue, cudaMalloc(nullptr, 1));
    cudaError_t other = cudaErrorUnknown;
    std::thread([&] { other = cudaPeekAtLastError(); }).join();
    EXPECT_CUDA(cudaSuccess, other);
    EXPECT_CUDA(cudaErrorInvalidValue, cudaPeekAtLastError());
    EXPECT_CUDA(cudaErrorInvalidValue, cudaGetLastError());
    EXPECT_CUDA(cudaSuccess, cudaGetLastError());
}

TEST_F(StandinErrors, CodesHaveNamesAndTexts) {
    EXPECT_STREQ(cudaGetErrorName(cudaErrorECCUncorrectable), "cudaErrorECCUncorrectable");
    EXPECT_STREQ(cudaGetErrorString(cudaErrorMemoryAllocation), "out of memory");
    EXPECT_STREQ(cudaGetErrorName(static_cast<cudaError_t>(1023)), "unrecognized error code");
}

TEST_F(StandinErrors, NamesAreThoseOfTheRealLibrary) {
    void* const real = ::dlopen(SWAPLAB_REAL_CUDART, RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(real, nullptr) << ::dlerror();
    const auto real_name =
        reinterpret_cast<decltype(&cudaGetErrorName)>(::dlsym(real, "cudaGetErrorName"));
    ASSERT_NE(real_name, nullptr);
    ASSERT_NE(real_name, &cudaGetErrorName);
    for (int code = 0; code <= 1000; ++code) {
        const auto error = static_cast<cudaError_t>(code);
        EXPECT_STREQ(cudaGetErrorName(error), real_name(error)) << code;
    }
    ::dlclose(real);
}

int exit_code_of_child(int (*program)()) {
    const pid_t child = ::fork();
    if (child == 0) {
        ::_exit(program());
    }
    int status = -1;
    ::waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST_F(StandinErrors, AForkedChildMayNotUseTheDeviceOfItsParent) {
    ASSERT_CUDA(cudaFree(nullptr));
    const auto program = [] {
        void* pointer = nullptr;
        return static_cast<int>(cudaMalloc(&pointer, 1));
    };
    EXPECT_EQ(exit_code_of_child(program), static_cast<int>(cudaErrorInitializationError));
}

TEST_F(StandinErrors, AForkedChildMayBeginAnewAndLeavesItsParentAlone) {
    void* pointer = nullptr;
    ASSERT_CUDA(cudaMalloc(&pointer, 100));
    ASSERT_CUDA(cudaMemset(pointer, 7, 100));
    ASSERT_CUDA(cudaDeviceSynchronize());
    const auto program = [] {
        begin({});
        void* own = nullptr;
        return cudaMalloc(&own, 100) == cudaSuccess && cudaMemset(own, 9, 100) == cudaSuccess &&
                       cudaDeviceSynchronize() == cudaSuccess
                   ? 0
                   : 1;
    };
    EXPECT_EQ(exit_code_of_child(program), 0);
    EXPECT_EQ(*device().inspect(pointer), std::byte{7});
}

TEST_F(StandinErrors, ThreadsMayCallAtOnce) {
    const auto work = [] {
        cudaStream_t stream = nullptr;
        EXPECT_CUDA(cudaSuccess, cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
        for (int i = 0; i < 50; ++i) {
            void* pointer = nullptr;
            EXPECT_CUDA(cudaSuccess, cudaMallocAsync(&pointer, 1000, stream));
            EXPECT_CUDA(cudaSuccess, cudaMemsetAsync(pointer, i, 1000, stream));
            EXPECT_CUDA(cudaSuccess, cudaFreeAsync(pointer, stream));
        }
        EXPECT_CUDA(cudaSuccess, cudaStreamSynchronize(stream));
        EXPECT_CUDA(cudaSuccess, cudaStreamDestroy(stream));
    };
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
        threads.emplace_back(work);
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
    EXPECT_EQ(device().ledger().now(MemoryKind::device), 0U);
    device().finish();
    EXPECT_THAT(device().findings(), ::testing::IsEmpty());
}

TEST_F(StandinErrors, OptionsThatCanNeverBeRightAreRefused) {
    EXPECT_THROW(begin({.device_count = -1}), ArgumentError);
    EXPECT_THROW(begin({.device = {.capacity_bytes = 100, .context_bytes = 100}}), ArgumentError);
    EXPECT_THROW(standin()->device(1), ArgumentError);
    EXPECT_THROW(standin()->arm({{.call = "cudaMallok"}}), ArgumentError);
    EXPECT_THROW(standin()->arm({{.call = "cudaFree"}}), ArgumentError);
    EXPECT_THROW(standin()->arm({{.call = "cudaMalloc", .action = FaultAction::late}}),
                 ArgumentError);
    EXPECT_THROW(standin()->arm({{.call = "cudaMalloc", .action = FaultAction::kill}}),
                 ArgumentError);
}

}  // namespace
}  // namespace swaplab::sim
