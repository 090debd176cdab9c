#include "swaplab/sim/units.hpp"

#include <fmt/format.h>

namespace swaplab::sim {

std::string with_thousands(std::uint64_t value) {
    std::string digits = std::to_string(value);
    for (std::size_t from_right = 3; from_right < digits.size(); from_right += 4) {
        digits.insert(digits.size() - from_right, 1, ',');
    }
    return digits;
}

std::string count_of(std::uint64_t count, std::string_view one, std::string_view many) {
    const bool add_s = count != 1 && many.empty();
    return fmt::format("{} {}{}", with_thousands(count), count == 1 || add_s ? one : many,
                       add_s ? "s" : "");
}

std::string format_bytes(std::uint64_t bytes) {
    using namespace literals;
    if (bytes < 1_MiB) {
        return with_thousands(bytes) + " B";
    }
    return fmt::format("{} B ({:.1f} MiB)", with_thousands(bytes),
                       static_cast<double>(bytes) / static_cast<double>(1_MiB));
}

}  // namespace swaplab::sim
