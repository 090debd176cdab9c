#include "inspect/finding_blocks.hpp"

#include "inspect/table.hpp"
#include "inspect/text.hpp"

#include "swaplab/sim/units.hpp"

#include <fmt/format.h>

#include <set>

namespace swaplab::harness {
using sim::with_thousands;

std::string share(std::int64_t part, std::int64_t whole, const std::string& noun) {
    const double percent =
        whole == 0 ? 0 : 100.0 * static_cast<double>(part) / static_cast<double>(whole);
    return fmt::format("{} of {}{}{} ({:.1f} %)", with_thousands(static_cast<std::uint64_t>(part)),
                       with_thousands(static_cast<std::uint64_t>(whole)), noun.empty() ? "" : " ",
                       noun, percent);
}

std::string with_shape(const std::string& key, const Shape& shape) {
    return key + " " + optim::to_string(shape);
}

std::string place_of(const std::optional<StoredItem>& item) {
    return item ? fmt::format("{} at {}", item->relative_path, with_thousands(item->offset_bytes))
                : "no item";
}

std::string rows_text(Rows rows, std::vector<std::string> header, const Look& look) {
    const std::size_t more = look.all || rows.size() <= rows_shown ? 0 : rows.size() - rows_shown;
    rows.resize(rows.size() - more);
    rows.insert(rows.begin(), std::move(header));
    std::string text = aligned_keys(std::move(rows), "  ", look);
    if (more > 0) {
        text += fmt::format("  ... and {} more (--all)\n", with_thousands(more));
    }
    return text;
}

std::string line(const std::string& word, const std::string& text) {
    return fmt::format("  {:<6} {}\n", word, text);
}

Sums sums_of(const Findings& findings) {
    Sums sums;
    std::set<std::string> keys;
    for (const Finding* finding : findings) {
        sums.lost += finding->elements_lost;
        sums.elements += keys.insert(finding->key).second ? finding->elements : 0;
    }
    return sums;
}

std::set<std::string> keys_of(const Findings& findings) {
    std::set<std::string> keys;
    for (const Finding* finding : findings) {
        keys.insert(finding->key);
    }
    return keys;
}

}  // namespace swaplab::harness
