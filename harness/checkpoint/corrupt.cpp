#include "checkpoint/corrupt.hpp"

#include "checkpoint/paths.hpp"

#include "swaplab/sim/units.hpp"

#include <fmt/format.h>

namespace swaplab::harness {

CheckpointCorrupt corrupt(const CorruptPlace& place, const std::string& expected,
                          const std::string& found) {
    const std::string path = join_path(place.directory, place.relative_path);
    sim::ErrorFields fields{{"file", path}};
    std::string where = path;
    if (place.position) {
        where += fmt::format(", byte {}", sim::with_thousands(*place.position));
        fields.push_back({"offset", std::to_string(*place.position)});
    }
    if (!place.key.empty()) {
        where = fmt::format("{} ({})", place.key, where);
        fields.push_back({"key", place.key});
    }
    fields.push_back({"expected", expected});
    fields.push_back({"found", found});
    return CheckpointCorrupt(
        fmt::format(
            "checkpoint damaged: {}: expected {}, found {}; copy it again from its source or "
            "use an older checkpoint",
            where, expected, found),
        std::move(fields));
}

}  // namespace swaplab::harness
