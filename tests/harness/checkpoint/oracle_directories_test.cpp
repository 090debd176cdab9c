#include "support/checkpoint_expectation.hpp"

#include <gtest/gtest.h>

#include <filesystem>

namespace swaplab::tests {
namespace {

struct Directory {
    std::string path;
    std::string expected;
};

std::vector<Directory> directories() {
    const std::filesystem::path data = SWAPLAB_TEST_DATA;
    std::vector<Directory> result;
    for (const auto& entry : std::filesystem::directory_iterator(data / "dcp/checkpoints")) {
        if (entry.is_directory()) {
            result.push_back(
                {(entry.path() / "ckpt").string(), (entry.path() / "expected.json").string()});
        }
    }
    for (const auto& entry : std::filesystem::directory_iterator(data / "swap_adamw/checkpoints")) {
        if (entry.is_directory()) {
            result.push_back({entry.path().string(), entry.path().string() + ".expected.json"});
        }
    }
    return result;
}

TEST(OracleDirectories, AllOfThemReadToExactlyWhatPytorchWrote) {
    const auto storage = harness::make_posix_storage();
    const std::vector<Directory> all = directories();
    EXPECT_EQ(all.size(), 86U);
    for (const Directory& directory : all) {
        const ExpectationResult result =
            check_checkpoint(*storage, directory.path, directory.expected);
        EXPECT_THAT(result.differing, testing::IsEmpty()) << directory.path;
        EXPECT_THAT(result.not_supported, testing::IsEmpty()) << directory.path;
        EXPECT_GT(result.agreeing, 20U) << directory.path;
    }
}

}  // namespace
}  // namespace swaplab::tests
