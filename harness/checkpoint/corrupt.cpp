#include "checkpoint/corrupt.hpp"

#include "checkpoint/paths.hpp"

#include "swaplab/sim/units.hpp"

#include <fmt/format.h>

#include <string_view>

namespace swaplab::harness {
namespace {

/// Of keys as TrainEngine writes them: model.FQN, optimizer.state.FQN.KEY; else empty.
std::string parameter_of(std::string_view key) {
    constexpr std::string_view model = "model.";
    constexpr std::string_view state = "optimizer.state.";
    if (key.starts_with(model)) {
        return std::string(key.substr(model.size()));
    }
    if (!key.starts_with(state)) {
        return "";
    }
    key.remove_prefix(state.size());
    return std::string(key.substr(0, key.rfind('.')));
}

}  // namespace

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
        if (const std::string parameter = parameter_of(place.key); !parameter.empty()) {
            fields.push_back({"parameter", parameter});
        }
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
