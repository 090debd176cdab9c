#pragma once

/// What differs between two checkpoints, as values; nothing here prints.

#include "inspect/look.hpp"
#include "inspect/report.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace swaplab::harness {

/// values: equal shape and dtype, other elements. kind: a tensor on one side, an object on the
/// other. value: two objects.
enum class DifferenceKind : std::uint8_t { values, shape, dtype, kind, value };
[[nodiscard]] std::string_view name_of(DifferenceKind kind) noexcept;

/// The first element that differs, in row-major order.
struct FirstElement {
    Shape index;
    std::uint64_t a_bits = 0;
    std::uint64_t b_bits = 0;
    std::optional<std::uint64_t> ulp;  ///< of floating dtypes, unless one is NaN
};

struct Difference {
    DifferenceKind kind = DifferenceKind::values;
    std::string key;
    std::string a;  ///< what A holds, in words: "None", "tensor [5,3] fp32", "[6,2]"
    std::string b;
    // of DifferenceKind::values
    sim::DType dtype = sim::DType::float32;
    Shape shape;
    std::int64_t elements_different = 0;
    double largest = 0;  ///< absolute difference; elements that are NaN on one side are left out
    FirstElement first;
};

/// How a checkpoint is stored, apart from what it holds.
struct StoredAs {
    std::size_t files = 0;
    std::size_t items = 0;
    friend bool operator==(const StoredAs&, const StoredAs&) = default;
};

struct DiffReport {
    std::string a;  ///< directories
    std::string b;
    std::size_t equal = 0;                ///< keys
    std::vector<Difference> differences;  ///< in A's stored order
    std::vector<std::string> only_a;
    std::vector<std::string> only_b;
    StoredAs stored_a;
    StoredAs stored_b;

    [[nodiscard]] ExitCode exit_code() const noexcept;
};

/// Compares all keys: tensors bit by bit, 1 MiB at a time, objects by value. Errors: as Checkpoint.
[[nodiscard]] DiffReport diff_checkpoints(Checkpoint& a, Checkpoint& b);

/// Look::all: every line, else 8 of each kind. Look::quiet: the closing line.
[[nodiscard]] std::string to_text(const DiffReport& report, const Look& look);

}  // namespace swaplab::harness
