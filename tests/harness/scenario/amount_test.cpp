#include "scenario/language/amount.hpp"

#include <gtest/gtest.h>

namespace swaplab::harness::scenario {
namespace {

std::optional<std::int64_t> bytes(const std::string& toml, const UnitValues& units = {}) {
    Diagnostics diagnostics;
    const auto amount =
        read_amount(read_toml_value(toml), AmountOf::bytes, "capacity", diagnostics);
    EXPECT_EQ(amount.has_value(), !diagnostics.has_errors());
    return amount ? amount->value(units) : std::nullopt;
}

TEST(Amounts, HaveBinaryUnits) {
    EXPECT_EQ(bytes("\"3 B\""), 3);
    EXPECT_EQ(bytes("\"64 KiB\""), 65536);
    EXPECT_EQ(bytes("\"1.5 KiB\""), 1536);
    EXPECT_EQ(bytes("\"2 MiB\""), 2 << 20);
    EXPECT_EQ(bytes("\"1GiB\""), 1 << 30);
}

TEST(Amounts, AreSums) {
    EXPECT_EQ(bytes("[\"1 KiB\", \"-24 B\"]"), 1000);
}

TEST(Amounts, OfDerivedUnitsUseTheRanksValues) {
    UnitValues units;
    units.params = 100;
    units.grads = 100;
    units.moments = 200;
    units.ring = 48;
    EXPECT_EQ(bytes("[\"1 resident\", \"1 ring\"]", units), 248);
    EXPECT_EQ(bytes("\"0.5 moments\"", units), 100);
    EXPECT_EQ(bytes("\"0.001 moments\"", units), std::nullopt);
}

TEST(Amounts, WithoutAUnitAreRefused) {
    for (const char* bad : {"65536", "\"65536\"", "\"64 kb\"", "\"\"", "\"KiB\"", "\"1..5 B\"",
                            "\"0.5 B\"", "\"1e3 B\"", "\"99999999999999999999 B\"", "true", "[]",
                            "\"9999999999999 GiB\"", "\"5 elements\"", "\"-\"", "\"1. B\""}) {
        EXPECT_EQ(bytes(bad), std::nullopt) << bad;
    }
}

TEST(Durations, AreMilliseconds) {
    Diagnostics diagnostics;
    EXPECT_EQ(read_duration(read_toml_value("\"200 ms\""), "timeout", diagnostics), 200);
    EXPECT_EQ(read_duration(read_toml_value("\"5 s\""), "timeout", diagnostics), 5000);
    EXPECT_FALSE(diagnostics.has_errors());
    for (const char* bad : {"5", "\"5\"", "\"0 s\"", "\"-1 s\"", "\"5 h\""}) {
        EXPECT_EQ(read_duration(read_toml_value(bad), "timeout", diagnostics), std::nullopt);
    }
}

}  // namespace
}  // namespace swaplab::harness::scenario
