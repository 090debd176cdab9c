#pragma once

/// Amounts of scenario files: bytes, counts, derived units, sums of them.

#include "scenario/language/node.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace swaplab::harness::scenario {

enum class Unit : std::uint8_t {
    none,
    bytes,
    elements,
    params,
    grads,
    resident,
    moments,
    largest,
    slot,
    ring,
    chunk,
};

[[nodiscard]] std::string_view name_of(Unit unit) noexcept;

/// What one of each derived unit is worth: bytes, for one rank at one step.
struct UnitValues {
    std::int64_t params = 0;
    std::int64_t grads = 0;
    std::int64_t moments = 0;
    std::int64_t largest = 0;
    std::int64_t slot = 0;
    std::int64_t ring = 0;
    std::int64_t chunk = 0;
};

/// A sum of terms. Decimal factors are exact: scaled by a power of ten.
struct Amount {
    struct Term {
        std::int64_t factor = 0;  ///< times 10^-decimals
        int decimals = 0;
        Unit unit = Unit::none;
        std::uint64_t bytes_per_unit = 1;  ///< of Unit::bytes: 1, 1024, ...
        friend bool operator==(const Term&, const Term&) = default;
    };
    std::vector<Term> terms;
    std::string text;  ///< as the file says it

    /// True when it depends on rank and step.
    [[nodiscard]] bool derived() const noexcept;
    /// True for a plain number.
    [[nodiscard]] bool is_count() const noexcept;
    /// Empty when the result is not whole or does not fit.
    [[nodiscard]] std::optional<std::int64_t> value(const UnitValues& units) const;
    friend bool operator==(const Amount&, const Amount&) = default;
};

[[nodiscard]] Amount count_amount(std::int64_t count);

/// What a place in the file accepts.
enum class AmountOf : std::uint8_t { bytes, elements, count };

/// Reads an amount; says what is wrong with it (missing-unit, bad-amount) and returns empty then.
/// `key` names it in messages.
[[nodiscard]] std::optional<Amount> read_amount(const Node& node, AmountOf what,
                                                std::string_view key, Diagnostics& diagnostics);

/// "200 ms", "5 s" -> milliseconds.
[[nodiscard]] std::optional<std::int64_t> read_duration(const Node& node, std::string_view key,
                                                        Diagnostics& diagnostics);

}  // namespace swaplab::harness::scenario
