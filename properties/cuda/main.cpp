/// The properties on CUDA devices.

#include "lab/cuda_lab.hpp"
#include "training.hpp"

#include <gtest/gtest.h>

#include <exception>
#include <iostream>

int main(int argc, char** argv) {
    ::testing::InitGoogleTest(&argc, argv);
    try {
        const auto backend = swaplab::harness::make_cuda_backend();
        swaplab::properties::use_backend(*backend);
        if (!backend->sees_inside()) {
            // They compare worst peaks over all schedules, of which a GPU knows nothing.
            ::testing::GTEST_FLAG(filter) += "-PeakBound.*";
        }
        return RUN_ALL_TESTS();
    } catch (const std::exception& error) {
        std::cerr << "error: " << error.what() << "\n";
        return 4;
    }
}
