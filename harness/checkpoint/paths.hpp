#pragma once

/// Storage paths: '/' between names, no trailing '/'.

#include <string>
#include <string_view>

namespace swaplab::harness {

/// Without trailing and doubled '/' and "./" parts; "." for the empty path.
[[nodiscard]] std::string normal_path(std::string_view path);
[[nodiscard]] std::string join_path(std::string_view directory, std::string_view name);
/// "." for a name without directory, "/" for one at the root.
[[nodiscard]] std::string parent_of(const std::string& path);
[[nodiscard]] std::string base_name_of(const std::string& path);

}  // namespace swaplab::harness
