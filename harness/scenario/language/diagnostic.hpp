#pragma once

/// What is wrong with a scenario file, and where.

#include <string>
#include <string_view>
#include <vector>

namespace swaplab::harness::scenario {

/// A place in a file. Lines and columns count from 1; 0 = the file as a whole.
struct Position {
    int line = 0;
    int column = 0;
    int length = 1;  ///< characters to underline
    friend bool operator==(const Position&, const Position&) = default;
};

struct Diagnostic {
    std::string code;  ///< "missing-unit": stable, for machines
    Position at;
    std::string message;  ///< what is wrong, with the values
    std::string hint;     ///< what was expected, the nearest word; beside the caret
    bool warning = false;
    friend bool operator==(const Diagnostic&, const Diagnostic&) = default;
};

/// Collects diagnostics; the same one at the same place is kept once.
class Diagnostics {
  public:
    void error(std::string code, Position at, std::string message, std::string hint = "");
    void warn(std::string code, Position at, std::string message, std::string hint = "");

    [[nodiscard]] const std::vector<Diagnostic>& all() const noexcept { return all_; }
    [[nodiscard]] std::size_t error_count() const noexcept;
    [[nodiscard]] bool has_errors() const noexcept { return error_count() != 0; }
    void sort_by_place();

  private:
    void add(Diagnostic diagnostic);
    std::vector<Diagnostic> all_;
};

/// "FILE:8:1: error[unknown-key]: ..." with the line of `source` and a caret under it.
[[nodiscard]] std::string format(const Diagnostic& diagnostic, std::string_view file,
                                 std::string_view source);

/// The candidate with the smallest edit distance to `word`, or empty when none is near.
[[nodiscard]] std::string nearest(std::string_view word,
                                  const std::vector<std::string>& candidates);

/// "a, b, c".
[[nodiscard]] std::string join(const std::vector<std::string>& words,
                               std::string_view between = ", ");

}  // namespace swaplab::harness::scenario
