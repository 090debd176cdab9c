#include "swaplab/sim/call_site.hpp"

#include <fmt/format.h>

#include <string_view>

namespace swaplab::sim {

std::string format_site(CallSite site) {
    const std::string_view path = site.file;
    return fmt::format("{}:{}", path.substr(path.find_last_of('/') + 1), site.line);
}

}  // namespace swaplab::sim
