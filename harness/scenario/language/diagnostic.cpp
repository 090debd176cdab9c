#include "scenario/language/diagnostic.hpp"

#include "specimens/edit_distance.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <utility>

namespace swaplab::harness::scenario {
namespace {

std::string line_of(std::string_view source, int line) {
    std::size_t begin = 0;
    for (int n = 1; n < line; ++n) {
        const std::size_t end = source.find('\n', begin);
        if (end == std::string_view::npos) {
            return "";
        }
        begin = end + 1;
    }
    std::string text(source.substr(begin, source.find('\n', begin) - begin));
    std::replace_if(
        text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20; }, ' ');
    return text;
}

}  // namespace

void Diagnostics::error(std::string code, Position at, std::string message, std::string hint) {
    add({std::move(code), at, std::move(message), std::move(hint), false});
}

void Diagnostics::warn(std::string code, Position at, std::string message, std::string hint) {
    add({std::move(code), at, std::move(message), std::move(hint), true});
}

void Diagnostics::add(Diagnostic diagnostic) {
    if (std::find(all_.begin(), all_.end(), diagnostic) == all_.end()) {
        all_.push_back(std::move(diagnostic));
    }
}

std::size_t Diagnostics::error_count() const noexcept {
    return static_cast<std::size_t>(
        std::count_if(all_.begin(), all_.end(), [](const Diagnostic& d) { return !d.warning; }));
}

void Diagnostics::sort_by_place() {
    std::stable_sort(all_.begin(), all_.end(), [](const Diagnostic& a, const Diagnostic& b) {
        return std::tie(a.at.line, a.at.column) < std::tie(b.at.line, b.at.column);
    });
}

std::string format(const Diagnostic& diagnostic, std::string_view file, std::string_view source) {
    const char* kind = diagnostic.warning ? "warning" : "error";
    if (diagnostic.at.line == 0) {
        return fmt::format("{}: {}[{}]: {}{}{}\n", file, kind, diagnostic.code, diagnostic.message,
                           diagnostic.hint.empty() ? "" : "; ", diagnostic.hint);
    }
    // Long lines are cut to a window around the caret.
    constexpr int before = 60;
    constexpr std::size_t width = 110;
    std::string line = line_of(source, diagnostic.at.line);
    int column = std::max(diagnostic.at.column, 1);
    if (line.size() > width && column > before) {
        line =
            "..." + line.substr(std::min(line.size(), static_cast<std::size_t>(column - before)));
        column = before + 3;
    }
    if (line.size() > width) {
        line = line.substr(0, width) + "...";
    }
    const auto space = static_cast<std::size_t>(column - 1);
    const std::string tail(static_cast<std::size_t>(std::clamp(diagnostic.at.length - 1, 0, 40)),
                           '~');
    return fmt::format("{}:{}:{}: {}[{}]: {}\n{:>5} | {}\n      | {}^{}{}{}\n", file,
                       diagnostic.at.line, diagnostic.at.column, kind, diagnostic.code,
                       diagnostic.message, diagnostic.at.line, line, std::string(space, ' '), tail,
                       diagnostic.hint.empty() ? "" : " ", diagnostic.hint);
}

std::string nearest(std::string_view word, const std::vector<std::string>& candidates) {
    std::string best;
    std::size_t best_distance = std::max<std::size_t>(2, word.size() / 3) + 1;
    for (const std::string& candidate : candidates) {
        const std::size_t distance = edit_distance(word, candidate);
        if (distance < best_distance) {
            best = candidate;
            best_distance = distance;
        }
    }
    return best;
}

std::string join(const std::vector<std::string>& words, std::string_view between) {
    return fmt::format("{}", fmt::join(words, between));
}

}  // namespace swaplab::harness::scenario
