#pragma once

/// Values on their way from one rank to the others.

#include <cstdint>
#include <string>
#include <string_view>

namespace swaplab::sim {

/// A sequence of numbers and texts, written in one order and taken back in the same one. The bytes
/// are equal on every machine, so that they may be compared and gathered (all_gather_object).
class Message {
  public:
    Message() = default;
    explicit Message(std::string bytes) : bytes_(std::move(bytes)) {}

    void put(std::uint64_t number);
    void put(std::string_view text);

    /// Asserts that such a value comes next: only put() makes messages.
    [[nodiscard]] std::uint64_t number();
    [[nodiscard]] std::string text();

    [[nodiscard]] const std::string& bytes() const noexcept { return bytes_; }

  private:
    std::string bytes_;
    std::size_t position_ = 0;
};

}  // namespace swaplab::sim
