#include "inspect/roles.hpp"

#include <algorithm>
#include <array>

namespace swaplab::harness {
namespace {

constexpr std::array<std::string_view, 4> leaves{"exp_avg", "exp_avg_sq", "max_exp_avg_sq", "step"};

bool is_integer(std::string_view text) {
    return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

}  // namespace

std::optional<StateKey> state_key(std::string_view key) {
    constexpr std::string_view marker = "state.";
    std::size_t begin = 0;
    if (!key.starts_with(marker)) {
        begin = key.find(".state.");
        if (begin == std::string_view::npos) {
            return std::nullopt;
        }
        ++begin;
    }
    const std::size_t rest = begin + marker.size();
    const std::size_t dot = key.rfind('.');
    if (dot < rest) {
        return std::nullopt;
    }
    const std::string_view leaf = key.substr(dot + 1);
    if (std::find(leaves.begin(), leaves.end(), leaf) == leaves.end()) {
        return std::nullopt;
    }
    return StateKey{std::string(key.substr(0, rest)), std::string(key.substr(rest, dot - rest)),
                    std::string(leaf)};
}

KnownShapes::KnownShapes(std::string source, std::vector<Entry> shapes)
    : source_(std::move(source)), shapes_(std::move(shapes)) {
    for (std::size_t i = 0; i < shapes_.size(); ++i) {
        const std::string_view key = shapes_[i].first;
        add_ending(key, i);
        for (std::size_t dot = key.find('.'); dot != std::string_view::npos;
             dot = key.find('.', dot + 1)) {
            add_ending(key.substr(dot + 1), i);
        }
    }
}

void KnownShapes::add_ending(std::string_view ending, std::size_t entry) {
    const auto depth = [](const std::string& key) {
        return std::count(key.begin(), key.end(), '.');
    };
    const auto [place, is_new] = by_ending_.try_emplace(std::string(ending), Match{entry, false});
    Match& best = place->second;
    const Entry& known = shapes_[best.entry];
    const Entry& added = shapes_[entry];
    if (is_new || depth(added.first) < depth(known.first)) {
        best = {entry, false};
    } else if (depth(added.first) == depth(known.first)) {
        best.ambiguous = best.ambiguous || added.second != known.second;
    }
}

const KnownShapes::Entry* KnownShapes::find(std::string_view fqn) const {
    const auto found = by_ending_.find(fqn);
    if (found == by_ending_.end() || found->second.ambiguous) {
        return nullptr;
    }
    const Entry& best = shapes_[found->second.entry];
    return is_integer(fqn) && best.first != fqn ? nullptr : &best;
}

}  // namespace swaplab::harness
