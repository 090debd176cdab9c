#include "swaplab/optim/sharding.hpp"

#include <fmt/format.h>

#include <charconv>

namespace swaplab::optim {
namespace {

/// Takes `prefix` off the front of `text` if it is there.
bool take(std::string_view& text, std::string_view prefix) {
    if (text.substr(0, prefix.size()) != prefix) {
        return false;
    }
    text.remove_prefix(prefix.size());
    return true;
}

template <class Integer>
bool take_integer(std::string_view& text, Integer& value) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{}) {
        return false;
    }
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    return true;
}

bool take_dim(std::string_view& text, Placement& placement) {
    take(text, "dim=");
    return take_integer(text, placement.dim);
}

bool take_split_factor(std::string_view& text, Placement& placement) {
    take(text, "split_factor=") || take(text, "sf=");
    return take_integer(text, placement.split_factor) && placement.split_factor > 0;
}

std::optional<Placement> shard_from(std::string_view text, std::string_view end) {
    Placement placement = Placement::shard(0);
    if (!take_dim(text, placement) || text != end) {
        return std::nullopt;
    }
    return placement;
}

std::optional<Placement> strided_from(std::string_view text, std::string_view between,
                                      std::string_view end) {
    Placement placement{Placement::Kind::strided_shard, 0, 1};
    if (!take_dim(text, placement) || !take(text, between) || !take_split_factor(text, placement) ||
        text != end) {
        return std::nullopt;
    }
    return placement;
}

}  // namespace

std::string to_string(const Placement& placement) {
    switch (placement.kind) {
        case Placement::Kind::replicate:
            return "Replicate()";
        case Placement::Kind::shard:
            return fmt::format("Shard({})", placement.dim);
        case Placement::Kind::strided_shard:
            return fmt::format("_StridedShard({}, sf={})", placement.dim, placement.split_factor);
        case Placement::Kind::partial:
            return "Partial(sum)";
    }
    return "Replicate()";
}

std::optional<Placement> placement_from_text(std::string_view text) {
    if (text == "Replicate()" || text == "R") {
        return Placement::replicate();
    }
    if (text == "Partial(sum)" || text == "Partial()" || text == "P") {
        return Placement{Placement::Kind::partial, 0, 1};
    }
    if (take(text, "_StridedShard(")) {
        return strided_from(text, ", ", ")");
    }
    if (take(text, "Shard(")) {
        return shard_from(text, ")");
    }
    if (take(text, "SS")) {
        return strided_from(text, "/", "");
    }
    if (take(text, "S")) {
        return shard_from(text, "");
    }
    return std::nullopt;
}

}  // namespace swaplab::optim
