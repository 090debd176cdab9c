#include "inspect/diff_report.hpp"
#include "inspect/element.hpp"
#include "inspect/table.hpp"
#include "inspect/text.hpp"

#include "swaplab/sim/units.hpp"

#include <fmt/format.h>

#include <map>

namespace swaplab::harness {
namespace {

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

std::string values_text(const Difference& d) {
    const std::int64_t elements = optim::numel(d.shape);
    const std::string ulp = d.first.ulp ? "   " + with_thousands(*d.first.ulp) + " ULP" : "";
    return fmt::format("differs   {} {} {}   {} of {} elements, largest difference {}\n", d.key,
                       optim::to_string(d.shape), short_name_of(d.dtype),
                       with_thousands(static_cast<std::uint64_t>(d.elements_different)),
                       with_thousands(static_cast<std::uint64_t>(elements)),
                       short_exponent(d.largest)) +
           fmt::format("            first {}   A {}  {}   B {}  {}{}\n",
                       optim::to_string(d.first.index), hex_bits(d.dtype, d.first.a_bits),
                       value_text(d.dtype, d.first.a_bits), hex_bits(d.dtype, d.first.b_bits),
                       value_text(d.dtype, d.first.b_bits), ulp);
}

std::string one_text(const Difference& d) {
    return d.kind == DifferenceKind::values
               ? values_text(d)
               : fmt::format("{:<9} {}   A {}   B {}\n", name_of(d.kind), d.key, d.a, d.b);
}

std::string more_text(std::size_t more) {
    return more == 0 ? "" : fmt::format("... and {} more (--all)\n", with_thousands(more));
}

std::string differences_text(const DiffReport& report, bool all) {
    std::string text;
    for (const auto kind : {DifferenceKind::values, DifferenceKind::shape, DifferenceKind::dtype,
                            DifferenceKind::kind, DifferenceKind::value}) {
        std::size_t count = 0;
        for (const Difference& difference : report.differences) {
            if (difference.kind == kind && (count++ < rows_shown || all)) {
                text += one_text(difference);
            }
        }
        text += more_text(all || count <= rows_shown ? 0 : count - rows_shown);
    }
    return text;
}

/// One line per key with `all`, else one per group of keys with the same parent.
std::string only_text(const char* side, const std::vector<std::string>& keys, bool all) {
    std::vector<std::pair<std::string, std::size_t>> lines;
    for (const std::string& key : keys) {
        const std::size_t dot = key.rfind('.');
        const std::string parent =
            all || dot == std::string::npos ? key : key.substr(0, dot) + ".*";
        if (!lines.empty() && lines.back().first == parent) {
            ++lines.back().second;
        } else {
            lines.emplace_back(parent, 1);
        }
    }
    std::string text;
    const std::size_t shown = all ? lines.size() : std::min(lines.size(), rows_shown);
    for (std::size_t i = 0; i < shown; ++i) {
        const auto& [name, count] = lines[i];
        const std::string how_many =
            name.ends_with(".*") ? fmt::format(" ({} key{})", count, count == 1 ? "" : "s") : "";
        text += fmt::format("only in {} {}{}\n", side, name, how_many);
    }
    return text + more_text(lines.size() - shown);
}

std::string stored_text(const StoredAs& stored) {
    return fmt::format("{} data file{}, {} items", stored.files, stored.files == 1 ? "" : "s",
                       with_thousands(stored.items));
}

}  // namespace

std::string to_text(const DiffReport& report, bool all) {
    if (report.exit_code() == ExitCode::ok) {
        const std::string stored =
            report.stored_a == report.stored_b
                ? ""
                : fmt::format(" (stored differently: A {}; B {})", stored_text(report.stored_a),
                              stored_text(report.stored_b));
        return fmt::format("{} keys equal, bit for bit{}\n", with_thousands(report.equal), stored);
    }
    return differences_text(report, all) + only_text("A", report.only_a, all) +
           only_text("B", report.only_b, all) +
           fmt::format("{} keys equal, {} differ, {} only in A, {} only in B\n",
                       with_thousands(report.equal), with_thousands(report.differences.size()),
                       with_thousands(report.only_a.size()), with_thousands(report.only_b.size()));
}

}  // namespace swaplab::harness
