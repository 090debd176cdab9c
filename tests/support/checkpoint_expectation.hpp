#pragma once

/// Comparing a DCP directory with what PyTorch said about it when it was written.

#include "swaplab/harness/storage.hpp"

#include <string>
#include <vector>

namespace swaplab::tests {

/// How many facts an expected file states and which of them the directory does not show.
struct ExpectationResult {
    std::size_t agreeing = 0;
    std::vector<std::string> differing;
    std::vector<std::string> not_supported;  ///< facts that this code does not know how to check
};

/// Reads `directory` and compares it with `expected_file`: expected.json of the DCP data (typed
/// values, SHA-256 and value formula of every tensor) or NAME.expected.json of the SwapAdamW data
/// (bits of every chunk). Reading errors count as one difference with their text.
[[nodiscard]] ExpectationResult check_checkpoint(harness::Storage& storage,
                                                 const std::string& directory,
                                                 const std::string& expected_file);

}  // namespace swaplab::tests
