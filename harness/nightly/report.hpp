#pragma once

/// What a nightly run found, as JSON, JUnit and a page.

#include "nightly/measure.hpp"

#include <string>
#include <vector>

namespace swaplab::harness::nightly {

/// A test program or the like that the script ran.
struct Part {
    std::string name;
    int exit_code = 0;  ///< 77: skipped
    double seconds = 0;
};

struct Nightly {
    std::string gpu;
    bool judges_timing = false;  ///< false: nothing was timed on a GPU
    std::vector<Part> parts;
    Measurements measurements;
};

/// "passed", "failed", "not judged".
[[nodiscard]] std::string verdict(const Nightly& nightly, const Measured& figure);
[[nodiscard]] bool passed(const Nightly& nightly);
[[nodiscard]] std::string to_json(const Nightly& nightly);
/// The profile alone, as a file that `find_profile` reads.
[[nodiscard]] std::string profile_json(const Nightly& nightly);
[[nodiscard]] std::string to_junit(const Nightly& nightly);
[[nodiscard]] std::string to_html(const Nightly& nightly);
[[nodiscard]] std::string to_text(const Nightly& nightly);

}  // namespace swaplab::harness::nightly
