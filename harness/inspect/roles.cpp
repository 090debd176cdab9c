#include "inspect/roles.hpp"

#include <algorithm>
#include <array>
#include <charconv>

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

std::optional<int> writer_of(std::string_view file_name) {
    constexpr std::string_view begin = "__";
    int rank = -1;
    if (!file_name.starts_with(begin) || !file_name.ends_with(".distcp")) {
        return std::nullopt;
    }
    const char* last = file_name.data() + file_name.size();
    const auto [end, error] = std::from_chars(file_name.data() + begin.size(), last, rank);
    if (error != std::errc{} || rank < 0 || end == last || *end != '_') {
        return std::nullopt;
    }
    return rank;
}

const std::pair<std::string, optim::Shape>* KnownShapes::find(std::string_view fqn) const {
    const std::pair<std::string, optim::Shape>* best = nullptr;
    bool ambiguous = false;
    const std::string ending = "." + std::string(fqn);
    for (const auto& entry : shapes) {
        const std::string& key = entry.first;
        if (key != fqn && (is_integer(fqn) || !std::string_view(key).ends_with(ending))) {
            continue;
        }
        const auto depth = [](const std::string& k) { return std::count(k.begin(), k.end(), '.'); };
        if (best == nullptr || depth(key) < depth(best->first)) {
            best = &entry;
            ambiguous = false;
        } else if (depth(key) == depth(best->first)) {
            ambiguous = ambiguous || entry.second != best->second;
        }
    }
    return ambiguous ? nullptr : best;
}

}  // namespace swaplab::harness
