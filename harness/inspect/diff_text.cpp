#include "inspect/diff_report.hpp"
#include "inspect/element.hpp"
#include "inspect/table.hpp"
#include "inspect/text.hpp"

#include "swaplab/sim/units.hpp"

#include <fmt/format.h>

#include <map>

namespace swaplab::harness {
namespace {

using sim::count_of;
using sim::with_thousands;

std::string value_text(sim::DType dtype, std::uint64_t bits) {
    const double value = value_of_bits(dtype, bits);
    return fmt::format("{:.{}g}", value, dtype == sim::DType::float32 ? 9 : 17);
}

/// "2.386e-2": no zeros in front of the exponent.
std::string short_exponent(double value) {
    std::string text = fmt::format("{:.3e}", value);
    const std::size_t sign = text.find('e') + 1;
    if (sign + 1 < text.size() && text[sign + 1] == '0') {
        text.erase(sign + 1, 1);
    }
    return text;
}

/// The key of a line whose other parts take `others` characters.
std::string key_text(const std::string& key, std::size_t others, const Look& look) {
    const std::size_t room = look.columns > others ? look.columns - others : 0;
    return bold(look.columns == 0 ? key : fitted(key, room), look);
}

std::string values_text(const Difference& d, const Look& look) {
    const std::int64_t elements = optim::numel(d.shape);
    const std::string ulp = d.first.ulp ? "   " + with_thousands(*d.first.ulp) + " ULP" : "";
    const std::string rest = fmt::format(
        " {} {}   {} of {}, largest difference {}", optim::to_string(d.shape),
        short_name_of(d.dtype), with_thousands(static_cast<std::uint64_t>(d.elements_different)),
        count_of(static_cast<std::uint64_t>(elements), "element"), short_exponent(d.largest));
    constexpr std::size_t word = 10;
    return fmt::format("differs   {}{}\n", key_text(d.key, word + rest.size(), look), rest) +
           fmt::format("            first {}   A {}  {}   B {}  {}{}\n",
                       optim::to_string(d.first.index), hex_bits(d.dtype, d.first.a_bits),
                       value_text(d.dtype, d.first.a_bits), hex_bits(d.dtype, d.first.b_bits),
                       value_text(d.dtype, d.first.b_bits), ulp);
}

std::string one_text(const Difference& d, const Look& look) {
    if (d.kind == DifferenceKind::values) {
        return values_text(d, look);
    }
    const std::string rest = fmt::format("   A {}   B {}", d.a, d.b);
    constexpr std::size_t word = 10;
    return fmt::format("{:<9} {}{}\n", name_of(d.kind), key_text(d.key, word + rest.size(), look),
                       rest);
}

std::string more_text(std::size_t more) {
    return more == 0 ? "" : fmt::format("... and {} more (--all)\n", with_thousands(more));
}

std::string differences_text(const DiffReport& report, const Look& look) {
    std::string text;
    for (const auto kind : {DifferenceKind::values, DifferenceKind::shape, DifferenceKind::dtype,
                            DifferenceKind::kind, DifferenceKind::value}) {
        std::size_t count = 0;
        for (const Difference& difference : report.differences) {
            if (difference.kind == kind && (count++ < rows_shown || look.all)) {
                text += one_text(difference, look);
            }
        }
        text += more_text(look.all || count <= rows_shown ? 0 : count - rows_shown);
    }
    return text;
}

/// One line per key with `all`, else one per group of keys with the same parent.
std::string only_text(const char* side, const std::vector<std::string>& keys, const Look& look) {
    std::vector<std::pair<std::string, std::size_t>> lines;
    for (const std::string& key : keys) {
        const std::size_t dot = key.rfind('.');
        const std::string parent =
            look.all || dot == std::string::npos ? key : key.substr(0, dot) + ".*";
        if (!lines.empty() && lines.back().first == parent) {
            ++lines.back().second;
        } else {
            lines.emplace_back(parent, 1);
        }
    }
    std::string text;
    const std::size_t shown = look.all ? lines.size() : std::min(lines.size(), rows_shown);
    for (std::size_t i = 0; i < shown; ++i) {
        const auto& [name, count] = lines[i];
        const std::string how_many =
            name.ends_with(".*") ? fmt::format(" ({})", count_of(count, "key")) : "";
        constexpr std::size_t words = 10;
        text += fmt::format("only in {} {}{}\n", side,
                            key_text(name, words + how_many.size(), look), how_many);
    }
    return text + more_text(lines.size() - shown);
}

std::string stored_text(const StoredAs& stored) {
    return count_of(stored.files, "data file") + ", " + count_of(stored.items, "item");
}

}  // namespace

std::string to_text(const DiffReport& report, const Look& look) {
    if (report.exit_code() == ExitCode::ok) {
        const std::string stored =
            report.stored_a == report.stored_b
                ? ""
                : fmt::format(" (stored differently: A {}; B {})", stored_text(report.stored_a),
                              stored_text(report.stored_b));
        return fmt::format("{} equal, bit for bit{}\n", count_of(report.equal, "key"), stored);
    }
    std::string closing =
        fmt::format("{} equal, {} differ, {} only in A, {} only in B\n",
                    count_of(report.equal, "key"), with_thousands(report.differences.size()),
                    with_thousands(report.only_a.size()), with_thousands(report.only_b.size()));
    if (look.quiet) {
        return closing;
    }
    return dressed(differences_text(report, look) + only_text("A", report.only_a, look) +
                       only_text("B", report.only_b, look) + closing,
                   look);
}

}  // namespace swaplab::harness
