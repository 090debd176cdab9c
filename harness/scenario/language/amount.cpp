#include "scenario/language/amount.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

namespace swaplab::harness::scenario {
namespace {

struct UnitName {
    std::string_view name;
    Unit unit;
    std::uint64_t bytes;
};

constexpr std::array unit_names{
    UnitName{"B", Unit::bytes, 1},           UnitName{"KiB", Unit::bytes, 1U << 10U},
    UnitName{"MiB", Unit::bytes, 1U << 20U}, UnitName{"GiB", Unit::bytes, 1U << 30U},
    UnitName{"elements", Unit::elements, 1}, UnitName{"params", Unit::params, 1},
    UnitName{"grads", Unit::grads, 1},       UnitName{"resident", Unit::resident, 1},
    UnitName{"moments", Unit::moments, 1},   UnitName{"largest", Unit::largest, 1},
    UnitName{"slot", Unit::slot, 1},         UnitName{"ring", Unit::ring, 1},
    UnitName{"chunk", Unit::chunk, 1},
};

std::int64_t worth(const Amount::Term& term, const UnitValues& units) {
    switch (term.unit) {
        case Unit::none:
        case Unit::elements:
            return 1;
        case Unit::bytes:
            return static_cast<std::int64_t>(term.bytes_per_unit);
        case Unit::params:
            return units.params;
        case Unit::grads:
            return units.grads;
        case Unit::resident:
            return units.params + units.grads;
        case Unit::moments:
            return units.moments;
        case Unit::largest:
            return units.largest;
        case Unit::slot:
            return units.slot;
        case Unit::ring:
            return units.ring;
        case Unit::chunk:
            return units.chunk;
    }
    return 0;
}

/// "-1.5 moments" -> factor -15, decimals 1, unit text. False when it does not look like that.
bool split_term(std::string_view text, Amount::Term& term, std::string_view& unit) {
    constexpr int max_digits = 15;
    std::size_t at = 0;
    const bool negative = !text.empty() && text[0] == '-';
    at += negative ? 1 : 0;
    int digits = 0;
    bool point = false;
    for (; at < text.size(); ++at) {
        const char c = text[at];
        if (c == '.' && !point && digits > 0) {
            point = true;
        } else if (c >= '0' && c <= '9' && digits < max_digits) {
            term.factor = term.factor * 10 + (c - '0');
            term.decimals += point ? 1 : 0;
            ++digits;
        } else {
            break;
        }
    }
    if (digits == 0 || text[at - 1] == '.') {
        return false;
    }
    term.factor = negative ? -term.factor : term.factor;
    while (at < text.size() && text[at] == ' ') {
        ++at;
    }
    unit = text.substr(at);
    return true;
}

std::vector<std::string> unit_words() {
    std::vector<std::string> words;
    for (const UnitName& name : unit_names) {
        words.emplace_back(name.name);
    }
    return words;
}

bool fits(AmountOf what, Unit unit) {
    switch (what) {
        case AmountOf::bytes:
            return unit != Unit::none && unit != Unit::elements;
        case AmountOf::elements:
            return unit == Unit::elements;
        case AmountOf::count:
            return unit == Unit::none || unit == Unit::elements;
    }
    return false;
}

constexpr const char* wanted(AmountOf what) {
    switch (what) {
        case AmountOf::bytes:
            return "bytes need a unit, \"64 KiB\"";
        case AmountOf::elements:
            return "elements need their unit, \"1024 elements\"";
        case AmountOf::count:
            return "a plain number is expected";
    }
    return "";
}

std::optional<Amount::Term> read_term(const Node& node, AmountOf what, std::string_view key,
                                      Diagnostics& diagnostics) {
    Amount::Term term;
    if (node.is(Node::Kind::integer)) {
        term.factor = node.integer;
        if (!fits(what, Unit::none)) {
            diagnostics.error("missing-unit", node.at,
                              fmt::format("{} = {}: {}", key, show(node), wanted(what)));
            return std::nullopt;
        }
        return term;
    }
    std::string_view unit;
    if (!node.is(Node::Kind::text) || !split_term(node.text, term, unit)) {
        diagnostics.error(node.is(Node::Kind::text) ? "bad-amount" : "wrong-type", node.at,
                          fmt::format("{} = {}: {}", key, show(node), wanted(what)),
                          "an amount is a number and a unit");
        return std::nullopt;
    }
    if (!unit.empty() && unit.front() >= '0' && unit.front() <= '9') {
        diagnostics.error("bad-amount", node.at,
                          fmt::format("{} = {}: a number has at most 15 digits", key, show(node)));
        return std::nullopt;
    }
    const auto found = std::find_if(unit_names.begin(), unit_names.end(),
                                    [&](const UnitName& name) { return name.name == unit; });
    if (!unit.empty() && found == unit_names.end()) {
        const std::string near = nearest(unit, unit_words());
        diagnostics.error("unknown-unit", node.at,
                          fmt::format("{} = {}: no unit \"{}\"{}", key, show(node), unit,
                                      near.empty() ? "" : "; nearest: " + near),
                          "units are " + join(unit_words()));
        return std::nullopt;
    }
    term.unit = unit.empty() ? Unit::none : found->unit;
    term.bytes_per_unit = unit.empty() ? 1 : found->bytes;
    if (!fits(what, term.unit)) {
        diagnostics.error(unit.empty() ? "missing-unit" : "wrong-unit", node.at,
                          fmt::format("{} = {}: {}", key, show(node), wanted(what)));
        return std::nullopt;
    }
    return term;
}

}  // namespace

std::string_view name_of(Unit unit) noexcept {
    for (const UnitName& name : unit_names) {
        if (name.unit == unit) {
            return name.name;
        }
    }
    return "";
}

bool Amount::derived() const noexcept {
    return std::any_of(terms.begin(), terms.end(), [](const Term& term) {
        return term.unit != Unit::none && term.unit != Unit::bytes && term.unit != Unit::elements;
    });
}

bool Amount::is_count() const noexcept {
    return std::all_of(terms.begin(), terms.end(), [](const Term& term) {
        return term.unit == Unit::none || term.unit == Unit::elements;
    });
}

std::optional<std::int64_t> Amount::value(const UnitValues& units) const {
    std::int64_t total = 0;
    for (const Term& term : terms) {
        std::int64_t product = 0;
        if (__builtin_mul_overflow(term.factor, worth(term, units), &product)) {
            return std::nullopt;
        }
        for (int i = 0; i < term.decimals; ++i) {
            if (product % 10 != 0) {
                return std::nullopt;
            }
            product /= 10;
        }
        if (__builtin_add_overflow(total, product, &total)) {
            return std::nullopt;
        }
    }
    return total;
}

Amount count_amount(std::int64_t count) {
    return {{{count, 0, Unit::none, 1}}, fmt::format("{}", count)};
}

std::optional<Amount> read_amount(const Node& node, AmountOf what, std::string_view key,
                                  Diagnostics& diagnostics) {
    Amount amount;
    amount.text = show_plain(node);
    const std::vector<Node> one{node};
    const std::vector<Node>& members = node.is(Node::Kind::list) ? node.items : one;
    for (const Node& member : members) {
        const auto term = read_term(member, what, key, diagnostics);
        if (!term) {
            return std::nullopt;
        }
        amount.terms.push_back(*term);
    }
    if (amount.terms.empty()) {
        diagnostics.error("bad-amount", node.at, fmt::format("{} = []: an empty sum", key),
                          wanted(what));
        return std::nullopt;
    }
    if (!amount.derived() && !amount.value({})) {
        diagnostics.error(
            "bad-amount", node.at,
            fmt::format("{} = {}: not a whole number, or too large", key, show(node)));
        return std::nullopt;
    }
    return amount;
}

std::optional<std::int64_t> read_duration(const Node& node, std::string_view key,
                                          Diagnostics& diagnostics) {
    Amount::Term term;
    std::string_view unit;
    if (node.is(Node::Kind::text) && split_term(node.text, term, unit) && term.factor > 0 &&
        term.decimals == 0 && term.factor < 1'000'000'000 && (unit == "ms" || unit == "s")) {
        return term.factor * (unit == "s" ? 1000 : 1);
    }
    diagnostics.error(
        node.is_number() ? "missing-unit" : "bad-amount", node.at,
        fmt::format("{} = {}: a time is a whole number and ms or s, \"5 s\"", key, show(node)));
    return std::nullopt;
}

}  // namespace swaplab::harness::scenario
