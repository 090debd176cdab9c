#include "inspect/table.hpp"

#include <algorithm>
#include <numeric>

namespace swaplab::harness {
namespace {

using Rows = std::vector<std::vector<std::string>>;

constexpr std::size_t usual_gap = 3;

std::vector<std::size_t> widths_of(const Rows& rows) {
    std::vector<std::size_t> widths;
    for (const auto& row : rows) {
        widths.resize(std::max(widths.size(), row.size()), 0);
        for (std::size_t i = 0; i < row.size(); ++i) {
            widths[i] = std::max(widths[i], row[i].size());
        }
    }
    return widths;
}

/// `bold_keys`: how the first cells of all rows but the first look.
std::string lines_of(const Rows& rows, const std::string& indent, std::size_t gap,
                     const Look& bold_keys) {
    const std::vector<std::size_t> widths = widths_of(rows);
    std::string text;
    for (const auto& row : rows) {
        std::string line = indent;
        for (std::size_t i = 0; i < row.size(); ++i) {
            line += i == 0 && &row != &rows.front() ? bold(row[i], bold_keys) : row[i];
            line.append(widths[i] - row[i].size() + gap, ' ');
        }
        line.erase(line.find_last_not_of(' ') + 1);
        text += line + "\n";
    }
    return text;
}

}  // namespace

std::string aligned(const Rows& rows, const std::string& indent, std::size_t gap) {
    return lines_of(rows, indent, gap, {});
}

std::string aligned_keys(Rows rows, const std::string& indent, const Look& look) {
    const std::vector<std::size_t> widths = widths_of(rows);
    const std::size_t others =
        std::accumulate(widths.begin(), widths.end(), indent.size()) +
        (widths.empty() ? 0 : (widths.size() - 1) * usual_gap - widths.front());
    for (auto& row : rows) {
        std::replace(row.front().begin(), row.front().end(), '\n', '?');  // one row, one line
        if (look.columns > 0) {
            row.front() = fitted(row.front(), look.columns > others ? look.columns - others : 0);
        }
    }
    return lines_of(rows, indent, usual_gap, look);
}

}  // namespace swaplab::harness
