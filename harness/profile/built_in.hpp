#pragma once

#include <span>
#include <string_view>

namespace swaplab::harness {

struct BuiltInProfile {
    std::string_view name;
    std::string_view json;
};

/// The files of profiles/, sorted by name; CMake makes this from them.
[[nodiscard]] std::span<const BuiltInProfile> built_in_profiles();

}  // namespace swaplab::harness
