#include "tally.hpp"

#include <fmt/format.h>

#include <numeric>

namespace swaplab::oracle {
namespace {

constexpr std::size_t differences_shown = 5;

}  // namespace

void Tally::differ(const std::string& what) {
    ++differ_;
    if (first_differences_.size() < differences_shown) {
        first_differences_.push_back(what);
    }
}

void Tally::row(const std::string& name, const std::string& problem) {
    if (problem.empty()) {
        agree();
    } else {
        differ(name + ": " + problem);
    }
}

std::int64_t Tally::not_supported() const {
    return std::accumulate(unsupported_.begin(), unsupported_.end(), std::int64_t{0},
                           [](std::int64_t sum, const auto& entry) { return sum + entry.second; });
}

std::string Tally::to_text() const {
    std::string text = fmt::format("{}   {}   {} agree, {} differ, {} not supported\n", file_,
                                   kind_, agree_, differ_, not_supported());
    for (const std::string& difference : first_differences_) {
        text += "  differs        " + difference + "\n";
    }
    if (static_cast<std::size_t>(differ_) > first_differences_.size()) {
        text += fmt::format("  ... and {} more that differ\n",
                            static_cast<std::size_t>(differ_) - first_differences_.size());
    }
    for (const auto& [why, rows] : unsupported_) {
        text += fmt::format("  not supported  {} rows: {}\n", rows, why);
    }
    return text;
}

}  // namespace swaplab::oracle
