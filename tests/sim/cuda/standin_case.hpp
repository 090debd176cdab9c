#pragma once

/// A test over the stand-in, which begins anew for each.

#include "swaplab/sim/cuda/standin.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <cuda_runtime_api.h>

namespace swaplab::sim {

/// EXPECTs a call to return a code, naming both on failure.
#define EXPECT_CUDA(code, call) EXPECT_STREQ(cudaGetErrorName(code), cudaGetErrorName(call))
#define ASSERT_CUDA(call) ASSERT_STREQ("cudaSuccess", cudaGetErrorName(call))

class StandinCase : public ::testing::Test {
  protected:
    void SetUp() override {
        if (standin() == nullptr) {
            GTEST_SKIP() << "the stand-in is not in the library path";
        }
        begin({});
    }
    static void begin(const StandinOptions& options) { standin()->configure(options); }
    static SimulatedDevice& device() { return standin()->device(0); }
};

}  // namespace swaplab::sim
